/* A machine that starts PROCESSES more processes and threads, and then none. For root, whom no limit holds. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static int taken(void)
{
    static int left = -1;
    if (left < 0)
        left = atoi(getenv("PROCESSES"));
    if (left == 0)
        return 0;
    left--;
    return 1;
}

pid_t fork(void)
{
    pid_t (*real)(void) = dlsym(RTLD_NEXT, "fork");
    if (taken())
        return real();
    errno = EAGAIN;
    return -1;
}

pid_t vfork(void)
{
    return fork();
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
    return taken() ? real(thread, attributes, start, argument) : EAGAIN;
}
