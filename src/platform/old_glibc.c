/* SPDX-License-Identifier: MIT */
/* old_glibc.c - lets the programs and libraries of the wheel run with an older C library than that of the machine which
 * builds them. It is linked into the wheel's files only.
 *
 * glibc gives a function a new version when its behavior or its library changes, and the linker takes the newest one.
 * glibc 2.34 moved the threads and dlopen into libc.so.6, so a program that calls pthread_create needs GLIBC_2.34, even
 * though the old version, which every glibc still has, does the same. The linker's option --wrap=NAME (the Makefile
 * passes it for each name below) sends the calls of NAME in all objects, including those of static libraries, to
 * __wrap_NAME, and here that calls the oldest version.
 *
 * Worked example: libzstd.a calls pthread_create. The call goes to __wrap_pthread_create, which calls
 * pthread_create@GLIBC_2.2.5. With glibc 2.36 that symbol comes from libc.so.6, and with 2.28 from libpthread.so.0,
 * which the wheel's files therefore name as needed too.
 *
 * Building in an old system would be the usual way. It needs an old compiler, and an image that has to be downloaded.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>

#if defined(__x86_64__)
#define BASE "GLIBC_2.2.5"
#define VERSION_2_3_3 "GLIBC_2.3.3"
#define VERSION_2_3_4 "GLIBC_2.3.4"
#define VERSION_2_12 "GLIBC_2.12"
#define STAT_VERSION 1 /* the layout of struct stat that __xstat64 is asked for */
#elif defined(__aarch64__)
#define BASE "GLIBC_2.17" /* the first glibc of this architecture */
#define VERSION_2_3_3 BASE
#define VERSION_2_3_4 BASE
#define VERSION_2_12 BASE
#define STAT_VERSION 0
#else
#error "no old versions are known for this architecture: leave old_glibc.c out of the build"
#endif

/* Defines __wrap_NAME, which calls NAME of a version. */
#define OLD(result, name, version, parameters, arguments)                                                              \
    result old_##name parameters;                                                                                      \
    __asm__(".symver old_" #name "," #name "@" version);                                                               \
    result __wrap_##name parameters;                                                                                   \
    result __wrap_##name parameters                                                                                    \
    {                                                                                                                  \
        return old_##name arguments;                                                                                   \
    }

OLD(void *, dlopen, BASE, (const char *path, int mode), (path, mode))
OLD(void *, dlsym, BASE, (void *handle, const char *name), (handle, name))
OLD(int, dlclose, BASE, (void *handle), (handle))
OLD(char *, dlerror, BASE, (void), ())
OLD(int, dlinfo, VERSION_2_3_3, (void *handle, int request, void *result), (handle, request, result))

typedef void *thread_function(void *);
OLD(int, pthread_create, BASE, (pthread_t * thread, const pthread_attr_t *attributes, thread_function *run, void *user),
    (thread, attributes, run, user))
OLD(int, pthread_attr_setaffinity_np, VERSION_2_3_4,
    (pthread_attr_t * attributes, size_t size, const cpu_set_t *processors), (attributes, size, processors))
OLD(int, pthread_join, BASE, (pthread_t thread, void **result), (thread, result))
OLD(int, pthread_detach, BASE, (pthread_t thread), (thread))
OLD(int, pthread_kill, BASE, (pthread_t thread, int number), (thread, number))
OLD(int, pthread_setname_np, VERSION_2_12, (pthread_t thread, const char *name), (thread, name))
OLD(int, pthread_condattr_setclock, VERSION_2_3_3, (pthread_condattr_t * attributes, clockid_t clock),
    (attributes, clock))
OLD(int, pthread_sigmask, BASE, (int how, const sigset_t *set, sigset_t *before), (how, set, before))
OLD(int, pthread_once, BASE, (pthread_once_t * control, void (*run)(void)), (control, run))
OLD(int, pthread_key_create, BASE, (pthread_key_t * key, void (*destroy)(void *)), (key, destroy))
OLD(int, __pthread_key_create, BASE, (pthread_key_t * key, void (*destroy)(void *)), (key, destroy))
OLD(void *, pthread_getspecific, BASE, (pthread_key_t key), (key))
OLD(int, pthread_setspecific, BASE, (pthread_key_t key, const void *value), (key, value))

/* Since 2.38 the headers turn strtol and its kind into __isoc23_strtol, which also reads binary numbers ("0b1") where
 * the base is 0 or 2. Nothing in tokmap asks for these bases, so the former function does the same. */
#define NUMBER(result, name)                                                                                           \
    result old_##name(const char *text, char **end, int base);                                                         \
    __asm__(".symver old_" #name "," #name "@" BASE);                                                                  \
    result __wrap___isoc23_##name(const char *text, char **end, int base);                                             \
    result __wrap___isoc23_##name(const char *text, char **end, int base)                                              \
    {                                                                                                                  \
        return old_##name(text, end, base);                                                                            \
    }
NUMBER(long, strtol)
NUMBER(long long, strtoll)
NUMBER(unsigned long, strtoul)
NUMBER(unsigned long long, strtoull)

/* Before 2.33 stat, lstat, and fstat were not functions of the shared library, but calls of these. */
int old_stat(int version, const char *path, struct stat64 *found);
int old_lstat(int version, const char *path, struct stat64 *found);
int old_fstat(int version, int file, struct stat64 *found);
int old_fstatat(int version, int folder, const char *path, struct stat64 *found, int flags);
__asm__(".symver old_stat,__xstat64@" BASE);
__asm__(".symver old_lstat,__lxstat64@" BASE);
__asm__(".symver old_fstat,__fxstat64@" BASE);
#if defined(__x86_64__)
__asm__(".symver old_fstatat,__fxstatat64@GLIBC_2.4");
#else
__asm__(".symver old_fstatat,__fxstatat64@" BASE);
#endif

/* With _FILE_OFFSET_BITS=64 a call of stat is a call of stat64. */
int __wrap_stat64(const char *path, struct stat64 *found);
int __wrap_lstat64(const char *path, struct stat64 *found);
int __wrap_fstat64(int file, struct stat64 *found);
int __wrap_fstatat64(int folder, const char *path, struct stat64 *found, int flags);

int __wrap_stat64(const char *path, struct stat64 *found)
{
    return old_stat(STAT_VERSION, path, found);
}

int __wrap_lstat64(const char *path, struct stat64 *found)
{
    return old_lstat(STAT_VERSION, path, found);
}

int __wrap_fstat64(int file, struct stat64 *found)
{
    return old_fstat(STAT_VERSION, file, found);
}

int __wrap_fstatat64(int folder, const char *path, struct stat64 *found, int flags)
{
    return old_fstatat(STAT_VERSION, folder, path, found, flags);
}
