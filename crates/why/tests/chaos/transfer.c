/* Each account has its lock, but money on its way is in none of them. */
#include <pthread.h>
#include <stdlib.h>

struct account {
    pthread_mutex_t lock;
    int money;
};

static struct account a = {PTHREAD_MUTEX_INITIALIZER, 100};
static struct account b = {PTHREAD_MUTEX_INITIALIZER, 100};

static void add(struct account *account, int amount)
{
    pthread_mutex_lock(&account->lock);
    account->money += amount;
    pthread_mutex_unlock(&account->lock);
}

static int ask(struct account *account)
{
    pthread_mutex_lock(&account->lock);
    int money = account->money;
    pthread_mutex_unlock(&account->lock);
    return money;
}

static void *clerk(void *unused)
{
    add(&a, -30);
    add(&b, 30);
    return unused;
}

static void *auditor(void *unused)
{
    if (ask(&a) + ask(&b) != 200)
        abort();
    return unused;
}

int main(void)
{
    pthread_t first, second;
    pthread_create(&first, NULL, clerk, NULL);
    pthread_create(&second, NULL, auditor, NULL);
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    return 0;
}
