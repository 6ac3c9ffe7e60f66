/* os_linux.h - what the files of os.h for Linux share. */
#ifndef TOKMAP_PLATFORM_OS_LINUX_H
#define TOKMAP_PLATFORM_OS_LINUX_H

#include "os.h"

/* A descriptor that is readable for ever once a signal was caught: to be polled beside whatever else is waited for. -1,
 * which poll() passes over, in a process that catches none. */
int signals_wake(void);

#endif
