// execve of itself with another argv and environment: descriptors marked
// close-on-exec go, others and the ignored signals stay, handlers reset.
#include "verdict.h"
#include <fcntl.h>
#include <signal.h>

static void handle(int number) { (void)number; }

int main(int argc, char **argv)
{
    (void)argc;
    if (argv[1] && !strcmp(argv[1], "second")) {
        struct sigaction one, two;
        sigaction(SIGUSR1, NULL, &one), sigaction(SIGUSR2, NULL, &two);
        CHECK(one.sa_handler == SIG_DFL && two.sa_handler == SIG_IGN);
        CHECK(fcntl(10, F_GETFD) == 0 && fcntl(11, F_GETFD) == -1);
        char text[10] = {0};
        CHECK(pread(10, text, 9, 0) == 4 && !strcmp(text, "kept"));
        CHECK(!strcmp(getenv("ONLY"), "this") && !getenv("PATH"));
        printf("second image: %s %s\n", argv[1], argv[2]);
        return verdict();
    }
    puts("first image");
    fflush(stdout);
    int file = open("kept", O_RDWR | O_CREAT, 0600);
    CHECK(write(file, "kept", 4) == 4 && dup2(file, 10) == 10 && dup3(file, 11, O_CLOEXEC) == 11);
    signal(SIGUSR1, handle);
    signal(SIGUSR2, SIG_IGN);
    char *missing[] = {"x", NULL};
    CHECK(execve("./does-not-exist", missing, environ) == -1 && errno == ENOENT);
    CHECK(execve("kept", missing, environ) == -1 && errno == EACCES);
    char *arguments[] = {argv[0], "second", "argument with spaces", NULL}, *environment[] = {"ONLY=this", NULL};
    execve("/proc/self/exe", arguments, environment);
    CHECK(!"execve returned");
}
