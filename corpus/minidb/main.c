/* minidb: obeys the statements of standard input. */
#include <string.h>

#include "minidb.h"

int main(void) {
    char line[1024];
    int errors = 0;
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        if (!obey(line))
            errors++;
    }
    return errors > 0;
}
