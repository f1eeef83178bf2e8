/* budget: plans savings and loans to the cent.
 *
 * Orders, one per line:
 *     save MONTHLY RATE YEARS            what monthly deposits grow to
 *     loan AMOUNT RATE MONTHLY           how long a loan takes, and what it costs
 *     split AMOUNT NAME SHARE ...        divides an amount by shares, to the last cent
 *     stock UNITS PRICE                  the value of many units
 *     tax INCOME                         progressive tax
 * Amounts are like 12.50, rates are percent per year, like 3.25. */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SHARES = 16, RATE_SCALE = 10000 };

typedef int64_t cents;

static void print_cents(cents amount) {
    if (amount < 0) {
        putchar('-');
        amount = -amount;
    }
    printf("%lld.%02lld", (long long)(amount / 100), (long long)(amount % 100));
}

/* Reads digits with up to `places` after the point; returns the value scaled by 10^places. */
static int parse_scaled(const char *text, int places, int64_t *value) {
    int64_t result = 0;
    int seen = 0, after = -1;
    if (!*text)
        return 0;
    for (; *text; text++) {
        if (*text == '.' && after < 0) {
            after = 0;
            continue;
        }
        if (!isdigit((unsigned char)*text) || after == places)
            return 0;
        result = result * 10 + (*text - '0');
        seen++;
        if (after >= 0)
            after++;
    }
    for (int i = after < 0 ? 0 : after; i < places; i++)
        result *= 10;
    *value = result;
    return seen > 0;
}

static int parse_amount(const char *text, cents *amount) {
    return parse_scaled(text, 2, amount);
}

/* Percent per year as parts of RATE_SCALE. */
static int parse_rate(const char *text, int *rate) {
    int64_t value;
    if (!parse_scaled(text, 2, &value) || value > 100 * 100)
        return 0;
    *rate = (int)value;
    return 1;
}

/* One month's interest, rounded to the nearest cent. */
static cents monthly_interest(cents amount, int rate) {
    return (amount * rate + RATE_SCALE * 6) / (RATE_SCALE * 12);
}

/* ---- orders ---- */

static int save(char **words, int count) {
    cents monthly, total = 0, paid = 0;
    int rate;
    if (count != 3 || !parse_amount(words[0], &monthly) || !parse_rate(words[1], &rate))
        return 0;
    int years = atoi(words[2]);
    if (years < 1 || years > 60)
        return 0;
    for (int month = 1; month <= years * 12; month++) {
        total += monthly;
        paid += monthly;
        total += monthly_interest(total, rate);
        if (month % 60 == 0) {
            printf("  after %2d years ", month / 12);
            print_cents(total);
            printf("\n");
        }
    }
    printf("saved ");
    print_cents(total);
    printf(", interest ");
    print_cents(total - paid);
    printf("\n");
    return 1;
}

static int loan(char **words, int count) {
    cents amount, monthly, interest = 0;
    int rate, months = 0;
    if (count != 3 || !parse_amount(words[0], &amount) || !parse_rate(words[1], &rate) ||
        !parse_amount(words[2], &monthly))
        return 0;
    cents rest = amount;
    while (rest > 0 && months < 1200) {
        cents due = monthly_interest(rest, rate);
        if (due >= monthly) {
            printf("never paid back\n");
            return 1;
        }
        interest += due;
        rest += due;
        rest -= rest < monthly ? rest : monthly;
        months++;
    }
    printf("%d months, interest ", months);
    print_cents(interest);
    printf("\n");
    return 1;
}

/* Gives everyone the rounded-down share, then the left-over cents to the largest remainders. */
static int split(char **words, int count) {
    cents amount, parts[MAX_SHARES], rests[MAX_SHARES], given = 0;
    int shares[MAX_SHARES], people = (count - 1) / 2, sum = 0;
    if (count < 3 || count % 2 == 0 || people > MAX_SHARES || !parse_amount(words[0], &amount))
        return 0;
    for (int i = 0; i < people; i++) {
        shares[i] = atoi(words[2 + 2 * i]);
        if (shares[i] <= 0)
            return 0;
        sum += shares[i];
    }
    for (int i = 0; i < people; i++) {
        parts[i] = amount * shares[i] / sum;
        rests[i] = amount * shares[i] % sum;
        given += parts[i];
    }
    for (; given < amount; given++) {
        int largest = 0;
        for (int i = 1; i < people; i++)
            if (rests[i] > rests[largest])
                largest = i;
        parts[largest]++;
        rests[largest] = -1;
    }
    for (int i = 0; i < people; i++) {
        printf("  %-8s ", words[1 + 2 * i]);
        print_cents(parts[i]);
        printf("\n");
    }
    return 1;
}

static int value_of(int units, int price) {
    return units * price;
}

static int stock(char **words, int count) {
    cents price;
    if (count != 2 || !parse_amount(words[1], &price))
        return 0;
    int units = atoi(words[0]);
    if (units < 0 || price > 10000000)
        return 0;
    printf("%d units at ", units);
    print_cents(price);
    printf(" are ");
    print_cents(value_of(units, (int)price));
    printf("\n");
    return 1;
}

static int tax(char **words, int count) {
    static const struct {
        cents from;
        int percent;
    } brackets[] = {{0, 0}, {1000000, 15}, {3000000, 25}, {8000000, 40}};
    enum { BRACKETS = sizeof brackets / sizeof brackets[0] };
    cents income, due = 0;
    if (count != 1 || !parse_amount(words[0], &income))
        return 0;
    for (int i = 0; i < BRACKETS; i++) {
        cents to = i + 1 < BRACKETS ? brackets[i + 1].from : income;
        if (to > income)
            to = income;
        if (to > brackets[i].from)
            due += (to - brackets[i].from) * brackets[i].percent / 100;
    }
    printf("tax ");
    print_cents(due);
    printf(", left ");
    print_cents(income - due);
    printf("\n");
    return 1;
}

static const struct {
    const char *name;
    int (*obey)(char **words, int count);
} orders[] = {{"save", save}, {"loan", loan}, {"split", split}, {"stock", stock}, {"tax", tax}};

static int obey(char *line) {
    char *words[2 * MAX_SHARES + 2];
    int count = 0;
    for (char *word = strtok(line, " \t\n"); word && count < 2 * MAX_SHARES + 2;
         word = strtok(NULL, " \t\n"))
        words[count++] = word;
    if (count == 0 || words[0][0] == '#')
        return 1;
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++)
        if (strcmp(orders[i].name, words[0]) == 0)
            return orders[i].obey(words + 1, count - 1);
    return 0;
}

int main(void) {
    char line[512];
    int errors = 0;
    for (int number = 1; fgets(line, sizeof line, stdin); number++) {
        if (!obey(line)) {
            printf("line %d: cannot understand this\n", number);
            errors++;
        }
    }
    return errors > 0;
}
