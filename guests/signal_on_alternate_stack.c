// SA_ONSTACK: the handler runs on the alternate stack, knows it, and a stack
// overflow is survived there.
#include "verdict.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/resource.h>

static char stack[64 * 1024];
static volatile int on_stack, told;
static sigjmp_buf back;

static void handle(int number)
{
    (void)number;
    char here;
    on_stack = &here >= stack && &here < stack + sizeof stack;
    stack_t now;
    sigaltstack(NULL, &now);
    told = now.ss_flags == SS_ONSTACK;
    stack_t other = {.ss_flags = SS_DISABLE};
    CHECK(sigaltstack(&other, NULL) == -1 && errno == EPERM);
}
static void overflowed(int number)
{
    (void)number;
    char here;
    on_stack = &here >= stack && &here < stack + sizeof stack;
    siglongjmp(back, 1);
}
__attribute__((noinline)) static long recurse(long n)
{
    volatile char frame[4096];
    frame[n % 4096] = (char)n;
    return n < 0 ? 0 : recurse(n + 1) + frame[n % 4096];
}

int main(void)
{
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack}, now;
    CHECK(sigaltstack(&alternate, NULL) == 0);
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    CHECK(on_stack && told);
    action.sa_flags = 0;
    sigaction(SIGUSR2, &action, NULL);
    struct sigaction overflow = {.sa_handler = overflowed, .sa_flags = SA_ONSTACK};
    sigaction(SIGSEGV, &overflow, NULL);
    for (int i = 0; i < 3; i++) {
        on_stack = 0;
        if (sigsetjmp(back, 1) == 0) printf("%ld\n", recurse(0));
        CHECK(on_stack);
        printf("survived overflow %d\n", i);
    }
    CHECK(sigaltstack(NULL, &now) == 0 && now.ss_flags == 0 && now.ss_sp == stack && now.ss_size == sizeof stack);
    return verdict();
}
