/* SPDX-License-Identifier: MIT */
/* file_server.h - a web server on 127.0.0.1 that sends the files of a folder, whole or in ranges, as object storage
 * does. It is a process of its own. Failures end the test (cmocka). */
#ifndef TESTS_SUPPORT_FILE_SERVER_H
#define TESTS_SUPPORT_FILE_SERVER_H

#include <stdint.h>
#include <sys/types.h>

struct file_server {
    pid_t process;
    uint16_t port;
};

/* Starts the server. Call it before the program has other threads. It ends with the program at the latest. */
void file_server_start(struct file_server *server, const char *folder);
void file_server_end(const struct file_server *server);

#endif
