// vfork, posix_spawn, system, popen and execveat: what the child inherits, and how the
// parent hears of a program that is not there.
#include "verdict.h"
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int child_of_all(char **argv)
{
    sigset_t mask;
    struct sigaction action;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    sigaction(SIGUSR2, NULL, &action);
    CHECK(sigismember(&mask, SIGUSR1) == 1 && action.sa_handler == SIG_IGN);
    CHECK(action.sa_flags == 0);
    CHECK(fcntl(20, F_GETFD) == 0 && fcntl(21, F_GETFD) == -1);
    printf("%s with %s\n", argv[2], getenv("WORD"));
    return 17;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "child"))
        return child_of_all(argv);
    sigset_t mask;
    sigemptyset(&mask), sigaddset(&mask, SIGUSR1), sigprocmask(SIG_BLOCK, &mask, NULL);
    signal(SIGUSR2, SIG_IGN);
    CHECK(dup2(1, 20) == 20 && dup3(1, 21, O_CLOEXEC) == 21);
    char *environment[] = {"WORD=spoken", NULL};
    int status;
    char *spawned[] = {argv[0], "child", "spawned", NULL};
    pid_t child;
    CHECK(posix_spawn(&child, argv[0], NULL, NULL, spawned, environment) == 0);
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 17);
    CHECK(posix_spawn(&child, "./nothing-here", NULL, NULL, spawned, environment) == ENOENT);
    CHECK(wait(&status) == -1 && errno == ECHILD);
    // What the child of vfork writes, the parent sees.
    volatile int written = 0;
    child = vfork();
    if (!child) {
        written = 5;
        char *forked[] = {argv[0], "child", "vforked", NULL};
        execve(argv[0], forked, environment);
        _exit(1);
    }
    CHECK(written == 5);
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 17);
    child = vfork();
    if (!child)
        _exit(9);
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 9);
    child = fork();
    if (!child) {
        int program = open(argv[0], O_RDONLY | O_CLOEXEC);
        char *executed[] = {argv[0], "child", "executed", NULL};
        /* musl has no name for it. */
        syscall(SYS_execveat, program, "", executed, environment, AT_EMPTY_PATH);
        _exit(1);
    }
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 17);
    fflush(stdout);
    CHECK(WEXITSTATUS(system("echo from a shell; exit 3")) == 3);
    FILE *pipe = popen("echo through a pipe", "r");
    char line[64];
    CHECK(pipe && fgets(line, sizeof line, pipe));
    fputs(line, stdout);
    CHECK(pclose(pipe) == 0);
    return verdict();
}
