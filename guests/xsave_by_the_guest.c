// The guest saves and restores its own vector state (as ld.so does on lazy binding).
#include "verdict.h"
#include <immintrin.h>

__attribute__((target("xsave,avx"), noinline)) int main(void)
{
    static unsigned char area[4096] __attribute__((aligned(64))), legacy[512] __attribute__((aligned(16)));
    unsigned char in[32], out[32];
    for (int i = 0; i < 32; i++) in[i] = (unsigned char)(i + 1);
    __asm__ volatile("vmovdqu (%0), %%ymm5\n"
                     "mov $7, %%eax\n xor %%edx, %%edx\n xsave (%1)\n"
                     "vxorps %%ymm5, %%ymm5, %%ymm5\n"
                     "mov $7, %%eax\n xor %%edx, %%edx\n xrstor (%1)\n"
                     "vmovdqu %%ymm5, (%2)\n vzeroupper"
                     : : "r"(in), "r"(area), "r"(out) : "rax", "rdx", "xmm5", "memory");
    CHECK(memcmp(in, out, 32) == 0);
    unsigned long bits;
    memcpy(&bits, area + 512, 8);
    CHECK((bits & 6) == 6 && (bits & ~7UL) == 0);
    __asm__ volatile("movdqu (%0), %%xmm6\n fxsave (%1)\n pxor %%xmm6, %%xmm6\n fxrstor (%1)\n movdqu %%xmm6, (%2)"
                     : : "r"(in), "r"(legacy), "r"(out) : "xmm6", "memory");
    CHECK(memcmp(in, out, 16) == 0);
    return verdict();
}
