// execve and fork while other threads run, wait for a lock and wait in the kernel.
#include "verdict.h"
#include <pthread.h>
#include <sys/wait.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int spins;

static void *spin(void *none)
{
    for (;;)
        spins++;
    return none;
}

static void *wait_for_lock(void *none)
{
    pthread_mutex_lock(&lock);
    return none;
}

static void *wait_for_input(void *pipe)
{
    char c;
    CHECK(read(*(int *)pipe, &c, 1) != 1);
    return NULL;
}

static void *execute(void *program)
{
    char *argv[] = {program, "second", NULL};
    while (spins < 1000)
        usleep(1000);
    execv(program, argv);
    CHECK(!"execv returned");
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    int pipes[2];
    if (argc > 1) {
        printf("%s image, %s\n", argv[1], argc > 2 ? argv[2] : "the first process");
        return argc > 2 ? 8 : verdict();
    }
    CHECK(pipe2(pipes, 02000000) == 0);
    pthread_mutex_lock(&lock);
    pthread_create(&thread, NULL, spin, NULL);
    pthread_create(&thread, NULL, wait_for_lock, NULL);
    pthread_create(&thread, NULL, wait_for_input, pipes);
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (!child) {
            char *arguments[] = {argv[0], "child", "forked among threads", NULL};
            execv(argv[0], arguments);
            _exit(1);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 8);
    }
    pthread_create(&thread, NULL, execute, argv[0]);
    pthread_join(thread, NULL);
    return 1;
}
