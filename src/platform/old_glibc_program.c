/* SPDX-License-Identifier: MIT */
/* old_glibc_program.c - what a program of the wheel needs in addition to old_glibc.c to run with an older C library.
 *
 * Since glibc 2.34 the start file of a program (crt1.o) leaves it to the C library to call the program's constructors,
 * and asks for a version of __libc_start_main that does so. An older C library expects a function that calls them. The
 * function here is the one that start files contained until 2.33. A newer C library calls it as well, in place of its
 * own, because it treats the program as one that was linked before 2.34.
 */
#include <math.h>
#include <stdint.h>
#include <sys/random.h>

#if defined(__x86_64__)
#define BASE "GLIBC_2.2.5"
#else
#define BASE "GLIBC_2.17"
#endif

typedef int main_function(int, char **, char **);
typedef void constructor(int, char **, char **);

/* The linker defines the borders of the arrays, and crti.o defines _init. */
extern constructor *__preinit_array_start[] __attribute__((visibility("hidden")));
extern constructor *__preinit_array_end[] __attribute__((visibility("hidden")));
extern constructor *__init_array_start[] __attribute__((visibility("hidden")));
extern constructor *__init_array_end[] __attribute__((visibility("hidden")));
void _init(void);

static int call_constructors(int count, char **arguments, char **environment)
{
    for (constructor **each = __preinit_array_start; each < __preinit_array_end; each++)
        (*each)(count, arguments, environment);
    _init();
    for (constructor **each = __init_array_start; each < __init_array_end; each++)
        (*each)(count, arguments, environment);
    return 0;
}

int old_libc_start_main(main_function *main, int count, char **arguments, main_function *init, void (*fini)(void),
                        void (*unload)(void), void *stack_end);
__asm__(".symver old_libc_start_main,__libc_start_main@" BASE);
int __wrap___libc_start_main(main_function *main, int count, char **arguments, main_function *init, void (*fini)(void),
                             void (*unload)(void), void *stack_end);

int __wrap___libc_start_main(main_function *main, int count, char **arguments, main_function *init, void (*fini)(void),
                             void (*unload)(void), void *stack_end)
{
    return old_libc_start_main(main, count, arguments, init ? init : call_constructors, fini, unload, stack_end);
}

/* glibc 2.29 gave these functions new versions, which do not set errno as the old ones did. */
double old_pow(double base, double exponent);
__asm__(".symver old_pow,pow@" BASE);
double __wrap_pow(double base, double exponent);

double __wrap_pow(double base, double exponent)
{
    return old_pow(base, exponent);
}

double old_exp(double x);
__asm__(".symver old_exp,exp@" BASE);
double __wrap_exp(double x);

double __wrap_exp(double x)
{
    return old_exp(x);
}

double old_log(double x);
__asm__(".symver old_log,log@" BASE);
double __wrap_log(double x);

double __wrap_log(double x)
{
    return old_log(x);
}

/* The archive of libstdc++, which is there for Snappy, uses a variable of glibc 2.32 and a function of 2.36. They are
 * defined here instead. With the variable at 0, libstdc++ counts references in the way that is right with threads. The
 * function serves std::random_device, which Snappy does not use. */
extern char __libc_single_threaded;
char __libc_single_threaded = 0;

uint32_t arc4random(void);

uint32_t arc4random(void)
{
    uint32_t number = 0;
    while (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        ;
    return number;
}

/* The unwinder of libgcc.a, which libstdc++ needs, asks this function of glibc 2.35 for the table of an address. It
 * gets no table, so an exception ends the program. Snappy throws none, except when an allocation fails. */
struct dl_find_object;
int _dl_find_object(void *address, struct dl_find_object *result);

int _dl_find_object(void *address, struct dl_find_object *result)
{
    (void)address;
    (void)result;
    return -1;
}
