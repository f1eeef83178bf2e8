// fork in every usual way: statuses of children that exit and that die, pipes both
// ways, SIGCHLD with its siginfo, a file position that both share, grandchildren.
#include "verdict.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

static volatile int *volatile nowhere = (volatile int *)8;
static volatile sig_atomic_t seen_pid, seen_status, seen_code;

static void on_child(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    seen_pid = info->si_pid, seen_status = info->si_status, seen_code = info->si_code;
}

static void statuses(void)
{
    int status;
    for (int code = 0; code < 3; code++) {
        pid_t child = fork();
        if (!child)
            _exit(code * 40);
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == code * 40);
    }
    int deaths[] = {SIGTERM, SIGKILL, SIGSEGV, SIGABRT, SIGUSR1};
    for (int i = 0; i < 5; i++) {
        pid_t child = fork();
        if (!child) {
            if (deaths[i] == SIGSEGV)
                *nowhere = 1;
            if (deaths[i] == SIGABRT)
                abort();
            kill(getpid(), deaths[i]);
            _exit(99);
        }
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == deaths[i]);
    }
}

static void stops(void)
{
    int status;
    pid_t child = fork();
    if (!child) {
        raise(SIGSTOP);
        _exit(6);
    }
    CHECK(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
    kill(child, SIGCONT);
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 6);
    siginfo_t info;
    child = fork();
    if (!child)
        _exit(11);
    CHECK(waitid(P_PID, child, &info, WEXITED) == 0);
    CHECK(info.si_pid == child && info.si_status == 11 && info.si_code == CLD_EXITED);
    CHECK(wait(&status) == -1 && errno == ECHILD);
}

static void talk(void)
{
    int there[2], back[2];
    CHECK(pipe(there) == 0 && pipe(back) == 0);
    pid_t child = fork();
    if (!child) {
        char c;
        close(there[1]), close(back[0]);
        while (read(there[0], &c, 1) == 1) {
            c ^= 32;
            CHECK(write(back[1], &c, 1) == 1);
        }
        _exit(0);
    }
    close(there[0]), close(back[1]);
    char text[6] = {0};
    for (int i = 0; i < 5; i++) {
        CHECK(write(there[1], &"hello"[i], 1) == 1);
        CHECK(read(back[0], text + i, 1) == 1);
    }
    close(there[1]);
    CHECK(read(back[0], text, 1) == 0 && wait(NULL) == child);
    printf("%s\n", text);
}

static void share_a_position(void)
{
    int file = open("shared", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(write(file, "abcdefghij", 10) == 10 && lseek(file, 2, SEEK_SET) == 2);
    pid_t child = fork();
    char text[3] = {0};
    if (!child) {
        CHECK(read(file, text, 2) == 2 && !memcmp(text, "cd", 2));
        _exit(0);
    }
    CHECK(wait(NULL) == child);
    CHECK(lseek(file, 0, SEEK_CUR) == 4 && read(file, text, 2) == 2 && !memcmp(text, "ef", 2));
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = on_child, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGCHLD, &action, NULL);
    statuses();
    CHECK(seen_pid > 0 && seen_status == SIGUSR1 && seen_code == CLD_KILLED);
    signal(SIGCHLD, SIG_DFL);
    stops();
    talk();
    share_a_position();
    int depth = 0;
    while (depth < 4) {
        fflush(stdout);
        pid_t child = fork();
        if (child) {
            int status;
            CHECK(waitpid(child, &status, 0) == child);
            CHECK(WEXITSTATUS(status) == (depth == 3 ? 40 : 0));
            if (depth)
                _exit(0);
            break;
        }
        if (++depth == 4) {
            printf("depth %d\n", depth);
            fflush(stdout);
            _exit(40);
        }
    }
    return verdict();
}
