/* bank: tellers move money between accounts while an auditor looks on.
 *
 * usage: bank [-a ACCOUNTS] [-t TELLERS] [-n TRANSFERS] [-b BALANCE] [-s SEED]
 *
 * Each teller makes its own fixed sequence of transfers. No account may go below zero; refused
 * transfers are counted. At the end the total must be what it was, and no balance may have been
 * seen below zero. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_ACCOUNTS = 64, MAX_TELLERS = 16 };

struct account {
    pthread_mutex_t lock;
    long balance;
    long lowest;
    long transfers;
};

struct bank {
    struct account accounts[MAX_ACCOUNTS];
    int count;
};

struct teller {
    pthread_t thread;
    struct bank *bank;
    int transfers;
    unsigned seed;
    long moved;
    long refused;
};

struct options {
    int accounts;
    int tellers;
    int transfers;
    long balance;
    unsigned seed;
};

static unsigned next_random(unsigned *state) {
    *state = *state * 1103515245u + 12345u;
    return *state >> 16;
}

static void die(const char *message) {
    fprintf(stderr, "bank: %s\n", message);
    exit(2);
}

/* ---- accounts ---- */

static void open_accounts(struct bank *bank, int count, long balance) {
    bank->count = count;
    for (int i = 0; i < count; i++) {
        pthread_mutex_init(&bank->accounts[i].lock, NULL);
        bank->accounts[i].balance = balance;
        bank->accounts[i].lowest = balance;
    }
}

static long balance_of(struct account *account) {
    pthread_mutex_lock(&account->lock);
    long balance = account->balance;
    pthread_mutex_unlock(&account->lock);
    return balance;
}

static void add(struct account *account, long amount) {
    pthread_mutex_lock(&account->lock);
    account->balance += amount;
    if (account->balance < account->lowest)
        account->lowest = account->balance;
    account->transfers++;
    pthread_mutex_unlock(&account->lock);
}

/* Takes the amount if the account holds it; returns whether it did. */
static int take(struct account *account, long amount) {
    if (balance_of(account) < amount)
        return 0;
    add(account, -amount);
    return 1;
}

static int transfer(struct bank *bank, int from, int to, long amount) {
    if (from == to || !take(&bank->accounts[from], amount))
        return 0;
    add(&bank->accounts[to], amount);
    return 1;
}

/* ---- tellers ---- */

static void *work(void *argument) {
    struct teller *teller = argument;
    struct bank *bank = teller->bank;
    for (int i = 0; i < teller->transfers; i++) {
        int from = (int)(next_random(&teller->seed) % (unsigned)bank->count);
        int to = (int)(next_random(&teller->seed) % (unsigned)bank->count);
        long amount = 1 + (long)(next_random(&teller->seed) % 100);
        if (transfer(bank, from, to, amount))
            teller->moved += amount;
        else
            teller->refused++;
    }
    return NULL;
}

static void employ(struct teller *tellers, struct bank *bank, const struct options *options) {
    for (int i = 0; i < options->tellers; i++) {
        tellers[i].bank = bank;
        tellers[i].transfers = options->transfers;
        tellers[i].seed = options->seed + (unsigned)i * 7919u;
        if (pthread_create(&tellers[i].thread, NULL, work, &tellers[i]) != 0)
            die("cannot start a teller");
    }
    for (int i = 0; i < options->tellers; i++)
        pthread_join(tellers[i].thread, NULL);
}

/* ---- the audit ---- */

static int audit(struct bank *bank, const struct options *options) {
    long total = 0, expected = options->balance * options->accounts;
    int overdrawn = 0;
    for (int i = 0; i < bank->count; i++) {
        total += balance_of(&bank->accounts[i]);
        if (bank->accounts[i].lowest < 0)
            overdrawn++;
    }
    printf("%d accounts, %d tellers, %d transfers each\n", options->accounts, options->tellers,
           options->transfers);
    printf("total %s\n", total == expected ? "as before" : "CHANGED");
    printf("%d accounts overdrawn\n", overdrawn);
    return total == expected && overdrawn == 0;
}

static struct options parse_options(int argc, char **argv) {
    struct options options = {8, 4, 2000, 100, 1};
    int letter;
    while ((letter = getopt(argc, argv, "a:t:n:b:s:")) != -1) {
        switch (letter) {
        case 'a':
            options.accounts = atoi(optarg);
            break;
        case 't':
            options.tellers = atoi(optarg);
            break;
        case 'n':
            options.transfers = atoi(optarg);
            break;
        case 'b':
            options.balance = atol(optarg);
            break;
        case 's':
            options.seed = (unsigned)atoi(optarg);
            break;
        default:
            die("usage: bank [-a ACCOUNTS] [-t TELLERS] [-n TRANSFERS] [-b BALANCE] [-s SEED]");
        }
    }
    if (options.accounts < 1 || options.accounts > MAX_ACCOUNTS || options.tellers < 1 ||
        options.tellers > MAX_TELLERS)
        die("too few or too many");
    return options;
}

int main(int argc, char **argv) {
    static struct bank bank;
    static struct teller tellers[MAX_TELLERS];
    struct options options = parse_options(argc, argv);
    open_accounts(&bank, options.accounts, options.balance);
    employ(tellers, &bank, &options);
    return audit(&bank, &options) ? 0 : 1;
}
