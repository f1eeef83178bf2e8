// SSE to SSE4.2: arithmetic, shuffles, conversions, string compare, MXCSR.
#include "verdict.h"
#include <immintrin.h>

static void print_vector(const char *name, __m128i vector)
{
    unsigned char bytes[16];
    _mm_storeu_si128((__m128i *)bytes, vector);
    printf("%-10s", name);
    for (int i = 0; i < 16; i++) printf("%02x", bytes[i]);
    printf("\n");
}

__attribute__((target("sse4.2,aes,pclmul,popcnt"))) int main(void)
{
    __m128i a = _mm_set_epi32(1, -2, 300000, 4), b = _mm_set_epi32(-5, 6, 7, 800000);
    print_vector("paddd", _mm_add_epi32(a, b));
    print_vector("pmulld", _mm_mullo_epi32(a, b));
    print_vector("pshufb", _mm_shuffle_epi8(a, _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, -1)));
    print_vector("packssdw", _mm_packs_epi32(a, b));
    print_vector("psadbw", _mm_sad_epu8(a, b));
    print_vector("pmaddwd", _mm_madd_epi16(a, b));
    print_vector("aesenc", _mm_aesenc_si128(a, b));
    print_vector("pclmul", _mm_clmulepi64_si128(a, b, 0x10));
    print_vector("palignr", _mm_alignr_epi8(a, b, 5));
    __m128 x = _mm_set_ps(1.5f, -2.25f, 3.75f, 1e10f), y = _mm_set_ps(2, 3, 7, 11);
    print_vector("divps", _mm_castps_si128(_mm_div_ps(x, y)));
    print_vector("sqrtps", _mm_castps_si128(_mm_sqrt_ps(y)));
    print_vector("cvtps2dq", _mm_cvtps_epi32(_mm_set_ps(1.5f, 2.5f, -3.5f, 1e20f)));
    print_vector("dpps", _mm_castps_si128(_mm_dp_ps(x, y, 0xf1)));
    print_vector("roundps", _mm_castps_si128(_mm_round_ps(x, _MM_FROUND_FLOOR)));
    const __m128i text = _mm_loadu_si128((const __m128i *)"find the number ");
    printf("pcmpistri %d\n", _mm_cmpistri(_mm_loadu_si128((const __m128i *)"nm\0aaaaaaaaaaaaa"), text, _SIDD_CMP_EQUAL_ANY));
    printf("crc32 %x popcnt %lld\n", _mm_crc32_u32(0, 0x12345678), (long long)_mm_popcnt_u64(0xf0f0f0f0f0f0f0f0ULL));
    unsigned mxcsr = _mm_getcsr();
    CHECK((mxcsr & 0xffc0) == 0x1f80);
    _mm_setcsr(mxcsr | 0x8040);
    volatile float tiny = 1e-38f, tenth = 0.1f;
    volatile float flushed = tiny * tenth;
    CHECK(flushed == 0.0f);
    printf("with %d", 1); // the mode survives library code
    fflush(stdout);
    CHECK((_mm_getcsr() & 0x8040) == 0x8040);
    _mm_setcsr(mxcsr);
    flushed = tiny * tenth;
    CHECK(flushed != 0.0f);
    puts("");
    __m64 mmx = _mm_set_pi16(1, 2, 3, 4);
    mmx = _mm_add_pi16(mmx, mmx);
    int low = _mm_cvtsi64_si32(mmx);
    _mm_empty();
    printf("mmx %x\n", low);
    return verdict();
}
