/* morse: turns text into Morse code and back.
 *
 * usage: morse [-d] [-s] [-w] < INPUT
 *
 *   -d  decode          -s  print statistics about the letters        -w  one word per line
 *
 * In Morse code letters are separated by blanks and words by a slash. Prosigns such as <SOS> are
 * sent without blanks between their letters. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_CODE = 8, MAX_WORD = 32, LETTERS = 26, DIGITS = 10 };

static const char *const letter_codes[LETTERS] = {
    ".-",   "-...", "-.-.", "-..",  ".",   "..-.", "--.",  "....", "..",
    ".---", "-.-",  ".-..", "--",   "-.",  "---",  ".--.", "--.-", ".-.",
    "...",  "-",    "..-",  "...-", ".--", "-..-", "-.--", "--..",
};

static const char *const digit_codes[DIGITS] = {
    "-----", ".----", "..---", "...--", "....-", ".....", "-....", "--...", "---..", "----.",
};

struct mark {
    char character;
    const char *code;
};

static const struct mark marks[] = {
    {'.', ".-.-.-"}, {',', "--..--"}, {'?', "..--.."}, {'\'', ".----."},
    {'!', "-.-.--"}, {'/', "-..-."},  {'-', "-....-"}, {'=', "-...-"},
};

enum { MARKS = sizeof marks / sizeof marks[0] };

/* What is being collected, and what was counted. */
static struct {
    char word[MAX_WORD];
    int (*print)(const char *text);
    int letters[LETTERS];
    int digits[DIGITS];
    int marks[MARKS];
    int unknown;
    int words;
} state;

static int word_length;

/* ---- codes ---- */

static const char *code_of(char c) {
    if (isalpha((unsigned char)c))
        return letter_codes[toupper((unsigned char)c) - 'A'];
    if (isdigit((unsigned char)c))
        return digit_codes[c - '0'];
    for (int i = 0; i < MARKS; i++)
        if (marks[i].character == c)
            return marks[i].code;
    return NULL;
}

static char character_of(const char *code) {
    for (int i = 0; i < LETTERS; i++)
        if (strcmp(letter_codes[i], code) == 0)
            return (char)('A' + i);
    for (int i = 0; i < DIGITS; i++)
        if (strcmp(digit_codes[i], code) == 0)
            return (char)('0' + i);
    for (int i = 0; i < MARKS; i++)
        if (strcmp(marks[i].code, code) == 0)
            return marks[i].character;
    return '\0';
}

static void count(char c) {
    if (isalpha((unsigned char)c)) {
        state.letters[toupper((unsigned char)c) - 'A']++;
        return;
    }
    if (isdigit((unsigned char)c)) {
        state.digits[c - '0']++;
        return;
    }
    for (int i = 0; i < MARKS; i++)
        if (marks[i].character == c)
            state.marks[i]++;
}

/* ---- encoding ---- */

static int spoken(void) {
    int any = 0;
    for (int i = 0; i < LETTERS; i++)
        any += state.letters[i];
    return any;
}

/* <ABC>: the codes of the letters without blanks between. Returns the end of it. */
static const char *encode_prosign(const char *text) {
    const char *c = text + 1;
    for (; *c && *c != '>'; c++) {
        const char *code = code_of(*c);
        if (code) {
            printf("%s", code);
            count(*c);
        }
    }
    return *c == '>' ? c + 1 : c;
}

static void encode_line(const char *text, int one_per_line) {
    int started = 0;
    while (*text) {
        if (isspace((unsigned char)*text)) {
            while (isspace((unsigned char)*text))
                text++;
            if (*text && started)
                printf(one_per_line ? "\n" : " /");
            if (started)
                state.words++;
            started = started && !one_per_line;
            continue;
        }
        if (started)
            putchar(' ');
        started = 1;
        if (*text == '<' && strchr(text, '>')) {
            text = encode_prosign(text);
            continue;
        }
        const char *code = code_of(*text);
        if (code) {
            printf("%s", code);
            count(*text);
        } else {
            printf("#");
            state.unknown++;
        }
        text++;
    }
    putchar('\n');
}

/* ---- decoding ---- */

static int print_word(const char *text) {
    return printf("%s", text);
}

static int print_word_line(const char *text) {
    return printf("%s\n", text);
}

static void end_word(int more) {
    if (word_length == 0)
        return;
    state.word[word_length] = '\0';
    state.print(state.word);
    if (more && state.print == print_word)
        putchar(' ');
    state.words++;
    word_length = 0;
}

static void decode_letter(const char *code) {
    char c = character_of(code);
    if (c == '\0') {
        c = '#';
        state.unknown++;
    } else {
        count(c);
    }
    state.word[word_length++] = c;
}

static void decode_line(char *text) {
    for (char *part = strtok(text, " \t\n"); part; part = strtok(NULL, " \t\n")) {
        if (strcmp(part, "/") == 0) {
            end_word(1);
            continue;
        }
        char code[MAX_CODE + 1];
        snprintf(code, sizeof code, "%s", part);
        decode_letter(code);
    }
    end_word(0);
    if (state.print == print_word)
        putchar('\n');
}

/* ---- statistics ---- */

static void print_statistics(void) {
    int best = 0;
    for (int i = 1; i < LETTERS; i++)
        if (state.letters[i] > state.letters[best])
            best = i;
    printf("%d words, %d unknown\n", state.words, state.unknown);
    if (spoken() > 0)
        printf("%d letters, most often %c (%d)\n", spoken(), 'A' + best, state.letters[best]);
    for (int i = 0; i < DIGITS; i++)
        if (state.digits[i])
            printf("%d: %d\n", i, state.digits[i]);
    for (int i = 0; i < MARKS; i++)
        if (state.marks[i])
            printf("%c: %d\n", marks[i].character, state.marks[i]);
}

int main(int argc, char **argv) {
    char line[2048];
    int letter, decoding = 0, statistics = 0, one_per_line = 0;
    while ((letter = getopt(argc, argv, "dsw")) != -1) {
        if (letter == 'd')
            decoding = 1;
        else if (letter == 's')
            statistics = 1;
        else if (letter == 'w')
            one_per_line = 1;
        else
            return 2;
    }
    state.print = one_per_line ? print_word_line : print_word;
    while (fgets(line, sizeof line, stdin)) {
        if (decoding)
            decode_line(line);
        else
            encode_line(line, one_per_line);
    }
    if (statistics)
        print_statistics();
    return state.unknown > 0;
}
