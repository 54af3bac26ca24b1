/* The wall clock of a process, moved by as many seconds as the file that HANDS names holds. Other clocks are left alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t id, struct timespec *now)
{
    static int (*real)(clockid_t, struct timespec *);
    long moved = 0;
    FILE *hands;
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(id, now);
    if (id == CLOCK_REALTIME && (hands = fopen(getenv("HANDS"), "r"))) {
        if (fscanf(hands, "%ld", &moved) == 1)
            now->tv_sec += moved;
        fclose(hands);
    }
    return failed;
}
