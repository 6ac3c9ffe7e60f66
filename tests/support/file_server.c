/* SPDX-License-Identifier: MIT */
/* file_server.c - see file_server.h. */
#include "file_server.h"

#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define CONNECTIONS 256
#define HEAD_MOST 8192

static bool send_all(int fd, const char *bytes, size_t count)
{
    for (ssize_t sent; count; bytes += sent, count -= (size_t)sent)
        if ((sent = send(fd, bytes, count, MSG_NOSIGNAL)) <= 0)
            return false;
    return true;
}

/* Answers a request. Returns false if the connection is of no more use. */
static bool answer(int fd, const char *folder, const char *head)
{
    char path[1200], name[600] = "", text[400];
    long long first = 0, last = -1;
    struct stat found;
    (void)sscanf(head, "%*s %599[^? ]", name);
    (void)snprintf(path, sizeof path, "%s%s", folder, name);
    FILE *file = strstr(name, "..") ? NULL : fopen(path, "rb");
    if (!file || fstat(fileno(file), &found) || !S_ISREG(found.st_mode)) {
        if (file)
            (void)fclose(file);
        static const char missing[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
        return send_all(fd, missing, sizeof missing - 1);
    }
    const char *range = strcasestr(head, "\r\nrange: bytes=");
    if (range)
        (void)sscanf(range + 15, "%lld-%lld", &first, &last);
    if (last < 0 || last >= found.st_size)
        last = found.st_size - 1;
    const size_t count = first <= last ? (size_t)(last - first + 1) : 0;
    char *bytes = malloc(count + 1);
    const bool read = bytes && !fseek(file, (long)first, SEEK_SET) && fread(bytes, 1, count, file) == count;
    (void)fclose(file);
    const int length = snprintf(text, sizeof text,
                                "HTTP/1.1 %s\r\nContent-Length: %zu\r\nContent-Range: bytes %lld-%lld/%lld\r\n"
                                "ETag: \"%lld\"\r\nAccept-Ranges: bytes\r\n\r\n",
                                range ? "206 Partial Content" : "200 OK", count, first, last, (long long)found.st_size,
                                (long long)found.st_ino);
    const bool sent =
        read && send_all(fd, text, (size_t)length) && (strncmp(head, "GET ", 4) != 0 || send_all(fd, bytes, count));
    free(bytes);
    return sent;
}

/* Reads what has come, and answers the request if it is complete. */
static bool serve_one(int fd, const char *folder, char head[HEAD_MOST], size_t *filled)
{
    const ssize_t got = recv(fd, head + *filled, HEAD_MOST - 1 - *filled, 0);
    if (got <= 0)
        return false;
    *filled += (size_t)got;
    head[*filled] = '\0';
    if (!strstr(head, "\r\n\r\n"))
        return true;
    *filled = 0; /* curl sends nothing more before the answer */
    return answer(fd, folder, head);
}

static void serve(int listener, const char *folder)
{
    static char heads[CONNECTIONS][HEAD_MOST];
    static size_t filled[CONNECTIONS];
    struct pollfd fds[CONNECTIONS] = {{.fd = listener, .events = POLLIN}};
    for (int i = 1; i < CONNECTIONS; i++)
        fds[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    while (poll(fds, CONNECTIONS, -1) > 0) {
        for (int i = 1; i < CONNECTIONS; i++)
            if (fds[i].fd >= 0 && fds[i].revents && !serve_one(fds[i].fd, folder, heads[i], &filled[i])) {
                (void)close(fds[i].fd);
                fds[i].fd = -1;
            }
        int vacant = 1;
        while (vacant < CONNECTIONS && fds[vacant].fd >= 0)
            vacant++;
        if (fds[0].revents && vacant < CONNECTIONS) {
            fds[vacant].fd = accept(listener, NULL, NULL);
            fds[vacant].revents = 0;
            filled[vacant] = 0;
        }
    }
}

void file_server_start(struct file_server *server, const char *folder)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    const pid_t parent = getpid();
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, bytes), 0);
    assert_int_equal(listen(listener, 256), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &bytes), 0);
    server->port = ntohs(address.sin_port);
    server->process = fork();
    assert_true(server->process >= 0);
    if (!server->process) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent)
            serve(listener, folder);
        _exit(1);
    }
    (void)close(listener);
}

void file_server_end(const struct file_server *server)
{
    (void)kill(server->process, SIGKILL);
    (void)waitpid(server->process, NULL, 0);
}
