// The auxiliary vector: page size, random bytes, own name, headers, entry, ids.
#include "verdict.h"
#include <elf.h>
#include <libgen.h>
#include <sys/auxv.h>

int main(int argc, char **argv)
{
    (void)argc;
    CHECK(getauxval(AT_PAGESZ) == 4096);
    CHECK(getauxval(AT_RANDOM) != 0);
    const char *name = (const char *)getauxval(AT_EXECFN);
    CHECK(name && !strcmp(basename((char *)name), basename(argv[0])));
    const Elf64_Phdr *headers = (const Elf64_Phdr *)getauxval(AT_PHDR);
    CHECK(headers && getauxval(AT_PHENT) == sizeof *headers && getauxval(AT_PHNUM) > 2);
    int loads = 0;
    for (unsigned long i = 0; i < getauxval(AT_PHNUM); i++) loads += headers[i].p_type == PT_LOAD;
    CHECK(loads >= 2);
    CHECK(getauxval(AT_ENTRY) != 0 && getauxval(AT_CLKTCK) == 100);
    CHECK(getauxval(AT_UID) == getuid() && getauxval(AT_EGID) == getegid() && getauxval(AT_SECURE) == 0);
    CHECK(!strcmp((const char *)getauxval(AT_PLATFORM), "x86_64"));
    CHECK(environ && argv[0]);
    return verdict();
}
