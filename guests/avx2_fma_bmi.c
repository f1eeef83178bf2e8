// AVX, AVX2, FMA, F16C, BMI1, BMI2, MOVBE, LZCNT: upper halves survive system
// calls and library calls.
#include "verdict.h"
#include <immintrin.h>

static void print_vector(const char *name, const void *vector)
{
    const unsigned char *bytes = vector;
    printf("%-12s", name);
    for (int i = 0; i < 32; i++) printf("%02x", bytes[i]);
    printf("\n");
}

#define SHOW(name, type, value) do { type shown = (value); print_vector(name, &shown); } while (0)

__attribute__((target("avx2,fma,bmi,bmi2,lzcnt,f16c,movbe"), noinline)) static void run(void)
{
    __m256i a = _mm256_set_epi32(1, 2, 3, -4, 5, 6, 7, 1 << 30), b = _mm256_set1_epi32(77);
    SHOW("vpaddd", __m256i, _mm256_add_epi32(a, b));
    SHOW("vpmulld", __m256i, _mm256_mullo_epi32(a, b));
    SHOW("vpermd", __m256i, _mm256_permutevar8x32_epi32(a, _mm256_set_epi32(0, 2, 4, 6, 1, 3, 5, 7)));
    SHOW("vpsllvd", __m256i, _mm256_sllv_epi32(a, _mm256_set_epi32(1, 2, 3, 4, 5, 6, 7, 40)));
    static const int table[16] = {0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 130, 140, 150};
    SHOW("vpgatherdd", __m256i, _mm256_i32gather_epi32(table, _mm256_set_epi32(0, 15, 3, 7, 9, 1, 2, 14), 4));
    __m256d x = _mm256_set_pd(1.1, 2.2, -3.3, 4.4), y = _mm256_set1_pd(0.7);
    SHOW("vfmadd", __m256d, _mm256_fmadd_pd(x, y, y));
    SHOW("vdivpd", __m256d, _mm256_div_pd(x, y));
    SHOW("vhaddpd", __m256d, _mm256_hadd_pd(x, y));
    SHOW("vcvtph2ps", __m256, _mm256_cvtph_ps(_mm_set_epi16(0x3c00, 0x4000, 0x4200, 0x1234, 0, 0x7bff, 0x0001, -0x4400)));
    int masked[8] = {9, 9, 9, 9, 9, 9, 9, 9};
    _mm256_maskstore_epi32(masked, _mm256_set_epi32(-1, 0, -1, 0, -1, 0, -1, 0), a);
    print_vector("vpmaskmov", masked);
    volatile unsigned long v = 0x123456789abcdef0UL, mask = 0xff00ff00ff00ff00UL;
    printf("andn %lx bextr %lx blsi %lx blsr %lx tzcnt %lx lzcnt %lx\n", (unsigned long)_andn_u64(v, mask),
           (unsigned long)_bextr_u64(v, 8, 20), (unsigned long)_blsi_u64(v), (unsigned long)_blsr_u64(v),
           (unsigned long)_tzcnt_u64(v), (unsigned long)_lzcnt_u64(v >> 9));
    printf("pdep %lx pext %lx bzhi %lx rorx %lx\n", (unsigned long)_pdep_u64(v, mask), (unsigned long)_pext_u64(v, mask),
           (unsigned long)_bzhi_u64(v, 33), (v >> 13) | (v << 51));
    unsigned long long high, low = _mulx_u64(v, mask, &high);
    printf("mulx %llx %llx\n", high, low);
    unsigned swapped;
    unsigned word = 0x11223344;
    __asm__ volatile("movbe %1, %0" : "=r"(swapped) : "m"(word));
    printf("movbe %x\n", swapped);
}

__attribute__((target("avx2"), noinline)) static void upper_halves_survive_system_calls(void)
{
    unsigned char before[16 * 32], after[16 * 32];
    for (int i = 0; i < 16 * 32; i++) before[i] = (unsigned char)(i * 7 + 3);
#define LOAD(n) "vmovdqu " #n "*32(%1), %%ymm" #n "\n"
#define SAVE(n) "vmovdqu %%ymm" #n ", " #n "*32(%2)\n"
#define ALL(M) M(0) M(1) M(2) M(3) M(4) M(5) M(6) M(7) M(8) M(9) M(10) M(11) M(12) M(13) M(14) M(15)
    long result = 39;
    __asm__ volatile(ALL(LOAD) "syscall\n" ALL(SAVE) "vzeroupper"
                     : "+a"(result) : "r"(before), "r"(after)
                     : "rcx", "r11", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
                       "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
    CHECK(result > 0);
    CHECK(memcmp(before, after, sizeof before) == 0);
}

int main(void)
{
    run();
    upper_halves_survive_system_calls();
    return verdict();
}
