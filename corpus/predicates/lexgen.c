/* Writes the skeleton of a scanner in C.
 *
 *   lexgen [-l] [-r] [-b] [-p PREFIX] < rules
 *
 * -l makes it compatible with old scanners, -r reentrant, -b with backing up.
 * A rule is "PATTERN ACTION", one a line.
 *
 * The fault: with -l the scanner uses yy_prev_more_offset, but its declaration
 * stands in a branch that is only taken for reentrant scanners.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RULES = 64, MOST_TEXT = 80 };

struct rule {
    char pattern[MOST_TEXT];
    char action[MOST_TEXT];
    int uses_more;
    int uses_reject;
};

static struct rule rules[MOST_RULES];
static int rule_count;
static int lex_compat;
static int reentrant;
static int backing_up;
static int yymore_used;
static int reject_used;
static const char *prefix = "yy";
static int indent_level;

static void out(const char *text)
{
    for (int i = 0; i < indent_level; i++)
        printf("    ");
    printf("%s\n", text);
}

static void out_prefixed(const char *format)
{
    char text[256];
    snprintf(text, sizeof text, format, prefix);
    out(text);
}

static void usage(void)
{
    fprintf(stderr, "usage: lexgen [-l] [-r] [-b] [-p PREFIX]\n");
    exit(2);
}

static void read_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-l") == 0)
            lex_compat = 1;
        else if (strcmp(argv[i], "-r") == 0)
            reentrant = 1;
        else if (strcmp(argv[i], "-b") == 0)
            backing_up = 1;
        else if (strcmp(argv[i], "-p") == 0 && i + 1 < argc)
            prefix = argv[++i];
        else
            usage();
    }
}

static void read_rules(void)
{
    char line[2 * MOST_TEXT];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        char *space = strchr(line, ' ');
        if (line[0] == 0 || line[0] == '%')
            continue;
        if (rule_count == MOST_RULES || space == NULL) {
            fprintf(stderr, "lexgen: bad rule: %s\n", line);
            exit(2);
        }
        struct rule *r = &rules[rule_count++];
        *space = 0;
        snprintf(r->pattern, MOST_TEXT, "%s", line);
        snprintf(r->action, MOST_TEXT, "%s", space + 1);
        r->uses_more = strstr(r->action, "yymore") != NULL;
        r->uses_reject = strstr(r->action, "REJECT") != NULL;
        if (r->uses_more)
            yymore_used = 1;
        if (r->uses_reject)
            reject_used = 1;
    }
}

static void make_declarations(void)
{
    out("typedef unsigned char YY_CHAR;");
    if (reentrant) {
        out_prefixed("struct %s_state;");
        out_prefixed("int %slex(struct yyguts_t *yyscanner);");
    } else {
        out("extern FILE *yyin, *yyout;");
        out_prefixed("int %slex(void);");
    }
    if (lex_compat)
        out("static char yytext[YYLMAX];");
    else
        out("char *yytext;");
}

static void make_tables(void)
{
    out("/* tables */");
    if (backing_up) {
        out("static int yy_last_accepting_state;");
        out("static char *yy_last_accepting_cpos;");
    }
    if (reject_used || lex_compat) {
        out("static int yy_full_match;");
        out("static int yy_lp;");
    }
    if (yymore_used || lex_compat) {
        if (!reentrant)
            out("static int yy_more_len = 0;");
#ifdef FIXED
        if (lex_compat)
            out("static int yy_prev_more_offset = 0;");
#else
        if (reentrant)
            out("static int yy_prev_more_offset = 0;");
#endif
    }
    out("static const short yy_accept[] = {");
    indent_level++;
    for (int i = 0; i < rule_count; i++) {
        char text[MOST_TEXT + 32];
        snprintf(text, sizeof text, "%d, /* %s */", i + 1, rules[i].pattern);
        out(text);
    }
    indent_level--;
    out("};");
}

static void make_actions(void)
{
    out_prefixed("int %slex(void)");
    out("{");
    indent_level++;
    if (lex_compat)
        out("yy_more_len = yy_prev_more_offset;");
    out("switch (yy_act) {");
    for (int i = 0; i < rule_count; i++) {
        char text[MOST_TEXT + 32];
        snprintf(text, sizeof text, "case %d: %s break;", i + 1, rules[i].action);
        out(text);
    }
    out("}");
    indent_level--;
    out("}");
}

int main(int argc, char **argv)
{
    read_options(argc, argv);
    read_rules();
    if (rule_count == 0)
        usage();
    make_declarations();
    make_tables();
    make_actions();
    return 0;
}
