/* lined: a line editor that takes its commands from standard input.
 *
 * Commands, with optional line addresses (N  N,M  .  $  /text/  'm  +N -N):
 *     a  i  c      append, insert, change: text follows, up to a line with a single dot
 *     d  j  p  n   delete, join, print, print with numbers
 *     m N  t N     move or copy behind line N
 *     s/old/new/g  substitute; & in the new text is what was found; g: all of them
 *     g/text/cmd   do a command on all lines that hold the text
 *     k m          mark a line with a letter      =  print the line number
 *     u            undo the last change           w  print the whole buffer between rules
 *     q            quit */
#include <ctype.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINES = 500, MAX_LINE = 256, MAX_PATTERN = 64 };

struct buffer {
    char *lines[MAX_LINES + 1]; /* from 1 */
    int count;
    int current;
    int marks[26];
};

struct command {
    int first;
    int last;
    int addresses; /* how many were given */
    char letter;
    const char *rest;
};

static struct buffer buffer, saved;
static int can_undo;
static jmp_buf on_error;
static char last_pattern[MAX_PATTERN];

static void fail(const char *message) {
    printf("? %s\n", message);
    longjmp(on_error, 1);
}

static char *copy(const char *text) {
    char *fresh = malloc(strlen(text) + 1);
    if (!fresh)
        exit(2);
    return strcpy(fresh, text);
}

/* ---- the buffer ---- */

static void clear(struct buffer *target) {
    for (int i = 1; i <= target->count; i++)
        free(target->lines[i]);
    memset(target, 0, sizeof *target);
}

static void copy_buffer(struct buffer *target, const struct buffer *source) {
    clear(target);
    *target = *source;
    for (int i = 1; i <= source->count; i++)
        target->lines[i] = copy(source->lines[i]);
}

static void save(void) {
    copy_buffer(&saved, &buffer);
    can_undo = 1;
}

static void undo(void) {
    static struct buffer kept;
    if (!can_undo)
        fail("nothing to undo");
    copy_buffer(&kept, &buffer);
    copy_buffer(&buffer, &saved);
    copy_buffer(&saved, &kept);
}

static void shift_marks(int from, int change) {
    for (int i = 0; i < 26; i++) {
        if (buffer.marks[i] >= from)
            buffer.marks[i] += change;
        else if (change < 0 && buffer.marks[i] >= from + change)
            buffer.marks[i] = 0;
    }
}

static void insert_after(int line, const char *text) {
    if (buffer.count == MAX_LINES)
        fail("the buffer is full");
    for (int i = buffer.count; i > line; i--)
        buffer.lines[i + 1] = buffer.lines[i];
    buffer.lines[line + 1] = copy(text);
    buffer.count++;
    shift_marks(line + 1, 1);
    buffer.current = line + 1;
}

static void delete_lines(int first, int last) {
    int gone = last - first + 1;
    for (int i = first; i <= last; i++)
        free(buffer.lines[i]);
    for (int i = last + 1; i <= buffer.count; i++)
        buffer.lines[i - gone] = buffer.lines[i];
    buffer.count -= gone;
    shift_marks(last + 1, -gone);
    buffer.current = first <= buffer.count ? first : buffer.count;
}

/* ---- addresses ---- */

static const char *skip_space(const char *text) {
    while (*text == ' ')
        text++;
    return text;
}

/* Copies up to the delimiter; an empty pattern stands for the last one. */
static const char *read_pattern(const char *text, char delimiter, char *pattern) {
    int length = 0;
    while (*text && *text != delimiter) {
        if (*text == '\\' && text[1] == delimiter)
            text++;
        if (length < MAX_PATTERN - 1)
            pattern[length++] = *text;
        text++;
    }
    pattern[length] = '\0';
    if (length == 0) {
        if (!last_pattern[0])
            fail("no pattern before");
        strcpy(pattern, last_pattern);
    } else {
        strcpy(last_pattern, pattern);
    }
    return *text == delimiter ? text + 1 : text;
}

static int search(const char *pattern) {
    for (int i = 1; i <= buffer.count; i++) {
        int line = (buffer.current + i - 1) % buffer.count + 1;
        if (strstr(buffer.lines[line], pattern))
            return line;
    }
    fail("not found");
    return 0;
}

/* Reads one address; -1 if there is none. */
static int read_address(const char **cursor) {
    const char *text = skip_space(*cursor);
    int line = -1;
    if (isdigit((unsigned char)*text)) {
        line = (int)strtol(text, (char **)&text, 10);
    } else if (*text == '.') {
        line = buffer.current;
        text++;
    } else if (*text == '$') {
        line = buffer.count;
        text++;
    } else if (*text == '/') {
        char pattern[MAX_PATTERN];
        text = read_pattern(text + 1, '/', pattern);
        line = search(pattern);
    } else if (*text == '\'' && islower((unsigned char)text[1])) {
        line = buffer.marks[text[1] - 'a'];
        if (line == 0)
            fail("no such mark");
        text += 2;
    }
    while (*text == '+' || *text == '-') {
        int sign = *text++ == '+' ? 1 : -1, amount = 1;
        if (isdigit((unsigned char)*text))
            amount = (int)strtol(text, (char **)&text, 10);
        line = (line < 0 ? buffer.current : line) + sign * amount;
    }
    *cursor = text;
    return line;
}

static struct command parse(const char *text) {
    struct command command = {.first = buffer.current, .last = buffer.current};
    int line = read_address(&text);
    if (line >= 0) {
        command.first = command.last = line;
        command.addresses = 1;
    }
    text = skip_space(text);
    if (*text == ',') {
        text++;
        if (command.addresses == 0)
            command.first = 1;
        line = read_address(&text);
        command.last = line >= 0 ? line : buffer.count;
        command.addresses = 2;
    }
    text = skip_space(text);
    command.letter = *text ? *text++ : 'p';
    command.rest = skip_space(text);
    return command;
}

static void need_lines(const struct command *command) {
    if (command->first < 1 || command->last > buffer.count || command->first > command->last)
        fail("no such lines");
}

/* ---- commands ---- */

static int read_line(char *line) {
    if (!fgets(line, MAX_LINE, stdin))
        return 0;
    line[strcspn(line, "\n")] = '\0';
    return 1;
}

static void read_text(int after) {
    char line[MAX_LINE];
    while (read_line(line) && strcmp(line, ".") != 0)
        insert_after(after++, line);
    buffer.current = after;
}

static void print_lines(const struct command *command, int numbers) {
    need_lines(command);
    for (int i = command->first; i <= command->last; i++) {
        if (numbers)
            printf("%d\t", i);
        printf("%s\n", buffer.lines[i]);
    }
    buffer.current = command->last;
}

static void join_lines(const struct command *command) {
    char joined[MAX_LINE];
    size_t length = 0;
    need_lines(command);
    for (int i = command->first; i <= command->last; i++) {
        size_t more = strlen(buffer.lines[i]);
        if (length + more >= sizeof joined)
            fail("line too long");
        memcpy(joined + length, buffer.lines[i], more);
        length += more;
    }
    joined[length] = '\0';
    delete_lines(command->first, command->last);
    insert_after(command->first - 1, joined);
}

static void move_lines(const struct command *command, int keep) {
    const char *rest = command->rest;
    int target = read_address(&rest), count = command->last - command->first + 1;
    char *moving[MAX_LINES];
    need_lines(command);
    if (target < 0 || target > buffer.count)
        fail("no such target");
    if (!keep && target >= command->first && target < command->last)
        fail("a block cannot move into itself");
    for (int i = 0; i < count; i++)
        moving[i] = copy(buffer.lines[command->first + i]);
    if (!keep) {
        delete_lines(command->first, command->last);
        if (target > command->last - 1)
            target -= count;
    }
    for (int i = 0; i < count; i++) {
        insert_after(target + i, moving[i]);
        free(moving[i]);
    }
}

/* ---- substitution ---- */

struct substitution {
    char old[MAX_PATTERN];
    char new[MAX_PATTERN];
    int all;
};

static struct substitution parse_substitution(const char *rest) {
    struct substitution result = {.all = 0};
    char delimiter = *rest;
    int length = 0;
    if (delimiter == '\0' || isalnum((unsigned char)delimiter))
        fail("a substitution needs a delimiter");
    rest = read_pattern(rest + 1, delimiter, result.old);
    while (*rest && *rest != delimiter) {
        if (*rest == '\\' && rest[1])
            rest++;
        if (length < MAX_PATTERN - 1)
            result.new[length++] = *rest;
        rest++;
    }
    result.new[length] = '\0';
    if (*rest == delimiter && rest[1] == 'g')
        result.all = 1;
    return result;
}

/* Adds the new text, with & replaced by the old. */
static size_t add_replacement(char *output, size_t length,
                              const struct substitution *substitution) {
    for (const char *c = substitution->new; *c; c++) {
        if (*c == '&') {
            size_t more = strlen(substitution->old);
            memcpy(output + length, substitution->old, more);
            length += more;
        } else {
            if (length + 1 >= MAX_LINE)
                fail("line too long");
            output[length++] = *c;
        }
    }
    return length;
}

/* Returns whether the line changed. */
static int substitute_line(int line, const struct substitution *substitution) {
    struct {
        char text[MAX_LINE];
        char *source;
        size_t old_length;
    } work;
    size_t length = 0;
    int changed = 0;
    work.source = buffer.lines[line];
    work.old_length = strlen(substitution->old);
    while (*work.source) {
        int found = strncmp(work.source, substitution->old, work.old_length) == 0;
        if (found && (substitution->all || !changed)) {
            length = add_replacement(work.text, length, substitution);
            work.source += work.old_length;
            changed = 1;
        } else {
            if (length + 1 >= sizeof work.text)
                fail("line too long");
            work.text[length++] = *work.source++;
        }
    }
    if (changed) {
        work.text[length] = '\0';
        free(buffer.lines[line]);
        buffer.lines[line] = copy(work.text);
        buffer.current = line;
    }
    return changed;
}

static void substitute(const struct command *command) {
    struct substitution substitution = parse_substitution(command->rest);
    int changed = 0;
    need_lines(command);
    for (int i = command->first; i <= command->last; i++)
        changed += substitute_line(i, &substitution);
    if (!changed)
        fail("no match");
}

/* ---- obeying ---- */

static void obey(const char *text, int nested);

static void global(const struct command *command) {
    char pattern[MAX_PATTERN];
    const char *rest = command->rest;
    if (*rest != '/')
        fail("a pattern is needed");
    rest = read_pattern(rest + 1, '/', pattern);
    if (*rest == 'a' || *rest == 'i' || *rest == 'c' || *rest == 'g' || *rest == 'u')
        fail("not in a global command");
    for (int line = 1; line <= buffer.count; line++) {
        int before = buffer.count;
        if (!strstr(buffer.lines[line], pattern))
            continue;
        buffer.current = line;
        obey(rest, 1);
        if (buffer.count < before)
            line -= before - buffer.count;
    }
}

static void mark(const struct command *command) {
    need_lines(command);
    if (!islower((unsigned char)command->rest[0]))
        fail("a mark is a letter");
    buffer.marks[command->rest[0] - 'a'] = command->last;
}

static void write_all(void) {
    printf("----\n");
    for (int i = 1; i <= buffer.count; i++)
        printf("%s\n", buffer.lines[i]);
    printf("---- %d lines\n", buffer.count);
}

static void change_buffer(const struct command *command, int nested) {
    if (!nested)
        save();
    switch (command->letter) {
    case 'a':
        if (command->last > buffer.count)
            fail("no such lines");
        read_text(command->last);
        break;
    case 'i':
        if (command->first > buffer.count)
            fail("no such lines");
        read_text(command->first > 0 ? command->first - 1 : 0);
        break;
    case 'c':
        need_lines(command);
        delete_lines(command->first, command->last);
        read_text(command->first - 1);
        break;
    case 'd':
        need_lines(command);
        delete_lines(command->first, command->last);
        break;
    case 'j': {
        struct command both = *command;
        if (both.addresses < 2)
            both.last = both.first + 1;
        join_lines(&both);
        break;
    }
    case 'm':
        move_lines(command, 0);
        break;
    case 't':
        move_lines(command, 1);
        break;
    case 's':
        substitute(command);
        break;
    case 'g':
        global(command);
        break;
    }
}

static void obey(const char *text, int nested) {
    struct command command = parse(text);
    switch (command.letter) {
    case 'p':
        print_lines(&command, 0);
        break;
    case 'n':
        print_lines(&command, 1);
        break;
    case '=':
        printf("%d\n", command.addresses ? command.last : buffer.count);
        break;
    case 'k':
        mark(&command);
        break;
    case 'u':
        undo();
        break;
    case 'w':
        write_all();
        break;
    default:
        if (!strchr("aicdjmtsg", command.letter))
            fail("no such command");
        change_buffer(&command, nested);
    }
}

int main(void) {
    char line[MAX_LINE];
    volatile int errors = 0;
    while (read_line(line)) {
        if (strcmp(line, "q") == 0)
            break;
        if (setjmp(on_error)) {
            errors++;
            continue;
        }
        obey(line, 0);
    }
    clear(&buffer);
    clear(&saved);
    return errors > 0;
}
