// longjmp out of deep recursion; makecontext and swapcontext as coroutines.
#include "verdict.h"
#include <setjmp.h>
#include <ucontext.h>

static jmp_buf back;
static ucontext_t main_context, generator;
static int yielded;
static char stack[65536];

static void dive(int depth) { depth == 0 ? longjmp(back, 7) : dive(depth - 1); }
static void generate(int first, int second)
{
    for (int i = 0; i < 1000; i++) {
        yielded = first + second * i;
        swapcontext(&generator, &main_context);
    }
}

int main(void)
{
    volatile int jumps = 0, result;
    while ((result = setjmp(back)) == 0 || jumps < 100) jumps++, dive(50);
    printf("%d %d\n", jumps, result);
    getcontext(&generator);
    generator.uc_stack.ss_sp = stack;
    generator.uc_stack.ss_size = sizeof stack;
    generator.uc_link = &main_context;
    makecontext(&generator, (void (*)(void))generate, 2, 5, 3);
    long sum = 0;
    for (int i = 0; i < 1000; i++) {
        swapcontext(&main_context, &generator);
        sum += yielded;
    }
    swapcontext(&main_context, &generator); // runs off its end, back here by uc_link
    printf("%ld\n", sum);
    return verdict();
}
