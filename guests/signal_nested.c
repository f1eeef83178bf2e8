// A handler interrupted by another signal, and by its own with SA_NODEFER;
// sa_mask holds others back; SA_RESETHAND works once.
#include "verdict.h"
#include <signal.h>

static char trail[64];
static volatile int at, depth;

static void inner(int number) { (void)number; trail[at++] = 'i'; }
static void outer(int number)
{
    (void)number;
    trail[at++] = '(';
    raise(SIGUSR2);
    trail[at++] = ')';
}
static void again(int number)
{
    trail[at++] = (char)('0' + depth);
    if (++depth < 4) raise(number);
    trail[at++] = '.';
}

int main(void)
{
    struct sigaction action = {.sa_handler = inner};
    sigaction(SIGUSR2, &action, NULL);
    action.sa_handler = outer;
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    puts(trail);
    memset(trail, 0, sizeof trail), at = 0;
    sigaddset(&action.sa_mask, SIGUSR2); // now held back until the handler returns
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    puts(trail);
    memset(trail, 0, sizeof trail), at = 0;
    struct sigaction nodefer = {.sa_handler = again, .sa_flags = SA_NODEFER};
    sigaction(SIGUSR1, &nodefer, NULL);
    raise(SIGUSR1);
    puts(trail);
    memset(trail, 0, sizeof trail), at = 0, depth = 0;
    struct sigaction defer = {.sa_handler = again};
    sigaction(SIGUSR1, &defer, NULL);
    raise(SIGUSR1);
    puts(trail);
    struct sigaction once = {.sa_handler = inner, .sa_flags = (int)SA_RESETHAND}, now;
    sigaction(SIGUSR1, &once, NULL);
    raise(SIGUSR1);
    sigaction(SIGUSR1, NULL, &now);
    CHECK(now.sa_handler == SIG_DFL);
    return verdict();
}
