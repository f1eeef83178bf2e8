// The C library's vectorised string functions at every alignment and length,
// also up against an unmapped page.
#include "verdict.h"
#include <sys/mman.h>
#include <wchar.h>

int main(void)
{
    char *pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(pages + 2 * 4096, 4096);
    char *limit = pages + 2 * 4096, copy[600];
    unsigned long hash = 0;
    for (int length = 0; length < 300; length++) {
        char *text = limit - length - 1;
        for (int i = 0; i < length; i++) text[i] = (char)('a' + (i * 7 + length) % 26);
        text[length] = 0;
        CHECK(strlen(text) == (size_t)length && strnlen(text, 1000) == (size_t)length);
        CHECK(memchr(text, 0, 5000) == text + length && strchr(text, '!') == NULL && strrchr(text, 0) == text + length);
        for (int shift = 0; shift < 4; shift++) {
            memcpy(copy + shift, text, (size_t)length + 1);
            CHECK(!strcmp(copy + shift, text) && !memcmp(copy + shift, text, (size_t)length));
            memmove(copy + shift + 3, copy + shift, (size_t)length + 1);
            CHECK(!strncmp(copy + shift + 3, text, (size_t)length + 10));
        }
        memset(copy, length, sizeof copy);
        for (size_t i = 0; i < sizeof copy; i++) hash = hash * 31 + (unsigned char)copy[i];
        if (length) {
            text[length - 1] = '#';
            CHECK(strchr(text, '#') == text + length - 1 && strpbrk(text, "#!") == text + length - 1);
            CHECK(strcspn(text, "#") == (size_t)length - 1 && strstr(text, "#") == text + length - 1);
        }
    }
    CHECK(wcslen(L"wide") == 4);
    printf("%lx\n", hash);
    return verdict();
}
