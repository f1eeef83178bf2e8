/* cronnext: tells when jobs of a crontab run next.
 *
 * usage: cronnext [-n COUNT] [-d] YYYY-MM-DD HH:MM < CRONTAB
 *
 * Lines: MINUTE HOUR DAY MONTH WEEKDAY NAME. Fields are *, numbers, ranges a-b, lists a,b and
 * steps x/n; months and weekdays may be names (jan, mon). If both day and weekday are
 * restricted, either may match. @hourly, @daily, @weekly, @monthly, @yearly stand for fields.
 *   -n  how many times to show for each job       -d  show what is in each field */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS = 5, MAX_NAME = 32, SEARCH_YEARS = 8 };
enum field { MINUTE, HOUR, DAY, MONTH, WEEKDAY };

struct job {
    uint64_t fields[FIELDS]; /* a bit per allowed value */
    int any[FIELDS];         /* the field was written as * */
    char name[MAX_NAME];
};

struct moment {
    int year, month, day, hour, minute;
};

static const struct {
    const char *name;
    int low, high;
} limits[FIELDS] = {
    {"minute", 0, 59}, {"hour", 0, 23}, {"day", 1, 31}, {"month", 1, 12}, {"weekday", 0, 7},
};

static const char *const month_names[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                          "jul", "aug", "sep", "oct", "nov", "dec"};
static const char *const weekday_names[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

/* ---- the calendar ---- */

static int is_leap(int year) {
    return year % 4 == 0 || (year % 100 != 0 && year % 400 == 0);
}

static int days_in(int year, int month) {
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && is_leap(year));
}

/* Sunday is 0. */
static int weekday_of(const struct moment *moment) {
    long days = 0;
    for (int year = 1970; year < moment->year; year++)
        days += 365 + is_leap(year);
    for (int month = 1; month < moment->month; month++)
        days += days_in(moment->year, month);
    days += moment->day - 1;
    return (int)((days + 4) % 7);
}

static void next_day(struct moment *moment) {
    moment->hour = moment->minute = 0;
    if (++moment->day > days_in(moment->year, moment->month)) {
        moment->day = 1;
        if (++moment->month > 12) {
            moment->month = 1;
            moment->year++;
        }
    }
}

static void next_minute(struct moment *moment) {
    if (++moment->minute == 60) {
        moment->minute = 0;
        if (++moment->hour == 24)
            next_day(moment);
    }
}

static int is_valid(const struct moment *moment) {
    return moment->year >= 1970 && moment->year < 2500 && moment->month >= 1 &&
           moment->month <= 12 && moment->day >= 1 &&
           moment->day <= days_in(moment->year, moment->month) && moment->hour >= 0 &&
           moment->hour < 24 && moment->minute >= 0 && moment->minute < 60;
}

/* ---- reading ---- */

static int find_name(const char *const *names, int count, const char *text) {
    for (int i = 0; i < count; i++)
        if (strncmp(names[i], text, 3) == 0)
            return i;
    return -1;
}

/* A number or a name; moves the cursor. Returns -1 if it is neither. */
static int read_value(const char **cursor, enum field field) {
    if (isdigit((unsigned char)**cursor)) {
        char *end;
        int value = (int)strtol(*cursor, &end, 10);
        *cursor = end;
        return value;
    }
    int value = -1;
    if (field == MONTH)
        value = find_name(month_names, 12, *cursor) + 1;
    else if (field == WEEKDAY)
        value = find_name(weekday_names, 7, *cursor);
    if (value < 0 || (field == MONTH && value == 0))
        return -1;
    *cursor += 3;
    return value;
}

/* One part of a list, such as 1-5/2. */
static int read_part(const char **cursor, enum field field, uint64_t *bits) {
    int low = limits[field].low, high = limits[field].high, step = 1;
    if (**cursor == '*') {
        (*cursor)++;
    } else {
        low = high = read_value(cursor, field);
        if (**cursor == '-') {
            (*cursor)++;
            high = read_value(cursor, field);
        } else if (**cursor == '/') {
            high = limits[field].high;
        }
    }
    if (**cursor == '/') {
        (*cursor)++;
        step = read_value(cursor, MINUTE);
    }
    if (low < limits[field].low || high > limits[field].high || low > high || step < 1)
        return 0;
    for (int value = low; value <= high; value += step)
        *bits |= (uint64_t)1 << value;
    return 1;
}

static int read_field(const char *text, enum field field, struct job *job) {
    uint64_t bits = 0;
    job->any[field] = strcmp(text, "*") == 0;
    do {
        if (!read_part(&text, field, &bits))
            return 0;
    } while (*text++ == ',');
    if (text[-1] != '\0')
        return 0;
    if (field == WEEKDAY && (bits >> 7 & 1))
        bits |= 1; /* 7 is Sunday too */
    job->fields[field] = bits;
    return 1;
}

static int read_job(char *line, struct job *job) {
    static const struct {
        const char *word;
        const char *fields;
    } shortcuts[] = {
        {"@hourly", "0 * * * *"},  {"@daily", "0 0 * * *"},  {"@weekly", "0 0 * * 0"},
        {"@monthly", "0 0 1 * *"}, {"@yearly", "0 0 1 1 *"},
    };
    char expanded[128];
    if (line[0] == '@') {
        char *rest = strchr(line, ' ');
        if (!rest)
            return 0;
        *rest++ = '\0';
        expanded[0] = '\0';
        for (size_t i = 0; i < sizeof shortcuts / sizeof shortcuts[0]; i++)
            if (strcmp(shortcuts[i].word, line) == 0)
                snprintf(expanded, sizeof expanded, "%s %s", shortcuts[i].fields, rest);
        line = expanded;
    }
    char *save, *word = strtok_r(line, " \t", &save);
    for (int field = 0; field < FIELDS; field++) {
        if (!word || !read_field(word, (enum field)field, job))
            return 0;
        word = strtok_r(NULL, " \t", &save);
    }
    if (!word)
        return 0;
    snprintf(job->name, sizeof job->name, "%s", word);
    return 1;
}

/* ---- matching ---- */

static int allows(const struct job *job, enum field field, int value) {
    return job->fields[field] >> value & 1;
}

static int day_matches(const struct job *job, const struct moment *moment) {
    int day = allows(job, DAY, moment->day);
    int weekday = allows(job, WEEKDAY, weekday_of(moment));
    if (!job->any[DAY] && !job->any[WEEKDAY])
        return day || weekday;
    return day && weekday;
}

/* Finds the next run after the moment; returns 0 if there is none for years. */
static int next_run(const struct job *job, struct moment *moment) {
    int last_year = moment->year + SEARCH_YEARS;
    next_minute(moment);
    while (moment->year <= last_year) {
        if (!allows(job, MONTH, moment->month) || !day_matches(job, moment)) {
            next_day(moment);
            continue;
        }
        if (allows(job, HOUR, moment->hour) && allows(job, MINUTE, moment->minute))
            return 1;
        int day = moment->day;
        do
            next_minute(moment);
        while (moment->day == day && !(allows(job, HOUR, moment->hour) &&
                                       allows(job, MINUTE, moment->minute)));
    }
    return 0;
}

/* ---- output ---- */

static void describe(const struct job *job) {
    for (int field = 0; field < FIELDS; field++) {
        printf("  %-8s", limits[field].name);
        if (job->any[field]) {
            printf(" any\n");
            continue;
        }
        for (int value = limits[field].low; value <= limits[field].high; value++)
            if (allows(job, (enum field)field, value))
                printf(" %d", value);
        printf("\n");
    }
}

static void print_runs(const struct job *job, struct moment moment, int count) {
    for (int i = 0; i < count; i++) {
        if (!next_run(job, &moment)) {
            printf("%-12s never\n", job->name);
            return;
        }
        printf("%-12s %04d-%02d-%02d %02d:%02d %s\n", job->name, moment.year, moment.month,
               moment.day, moment.hour, moment.minute, weekday_names[weekday_of(&moment)]);
    }
}

static int read_start(int argc, char **argv, int i, struct moment *start) {
    return i + 1 < argc &&
           sscanf(argv[i], "%d-%d-%d", &start->year, &start->month, &start->day) == 3 &&
           sscanf(argv[i + 1], "%d:%d", &start->hour, &start->minute) == 2 && is_valid(start);
}

int main(int argc, char **argv) {
    struct moment start;
    char line[256];
    int count = 1, details = 0, errors = 0, i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "-d") == 0)
            details = 1;
        else if (strcmp(argv[i], "-n") == 0 && i + 1 < argc)
            count = atoi(argv[++i]);
        else
            break;
    }
    if (!read_start(argc, argv, i, &start)) {
        fprintf(stderr, "usage: cronnext [-n COUNT] [-d] YYYY-MM-DD HH:MM\n");
        return 2;
    }
    for (int number = 1; fgets(line, sizeof line, stdin); number++) {
        struct job job = {.name = ""};
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '\0' || line[0] == '#')
            continue;
        if (!read_job(line, &job)) {
            printf("line %d: cannot understand this\n", number);
            errors++;
            continue;
        }
        if (details)
            describe(&job);
        print_runs(&job, start, count);
    }
    return errors > 0;
}
