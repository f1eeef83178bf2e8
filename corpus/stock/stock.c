/* stock: a store room that several clerks take from at the same time.
 *
 *   stock CLERKS ITEM=COUNT... -- [CLERK:ITEM:COUNT]...
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ITEMS 8
#define CLERKS 8
#define ORDERS 64

struct item {
    char name[16];
    int count;
    pthread_mutex_t lock;
};

struct order {
    int clerk;
    char name[16];
    int count;
};

struct room {
    struct item items[ITEMS];
    int used;
    struct order orders[ORDERS];
    int ordered;
    int refused[CLERKS];
    int taken[CLERKS];
};

struct clerk {
    pthread_t thread;
    struct room *room;
    int number;
};

static struct item *find(struct room *room, const char *name)
{
    for (int i = 0; i < room->used; i++)
        if (strcmp(room->items[i].name, name) == 0)
            return &room->items[i];
    return NULL;
}

static int take(struct room *room, const struct order *order)
{
    struct item *item = find(room, order->name);

    if (item == NULL)
        return 0;
    pthread_mutex_lock(&item->lock);
    if (item->count < order->count)
        return 0;
    item->count -= order->count;
    pthread_mutex_unlock(&item->lock);
    return order->count;
}

static void *work(void *arg)
{
    struct clerk *clerk = arg;
    struct room *room = clerk->room;

    for (int i = 0; i < room->ordered; i++) {
        const struct order *order = &room->orders[i];
        int got;

        if (order->clerk != clerk->number)
            continue;
        got = take(room, order);
        if (got == 0)
            room->refused[clerk->number]++;
        room->taken[clerk->number] += got;
    }
    return NULL;
}

static int add_item(struct room *room, const char *word)
{
    struct item *item = &room->items[room->used];

    if (room->used == ITEMS || sscanf(word, "%15[^=]=%d", item->name, &item->count) != 2)
        return 0;
    pthread_mutex_init(&item->lock, NULL);
    room->used++;
    return 1;
}

static int add_order(struct room *room, const char *word, int clerks)
{
    struct order *order = &room->orders[room->ordered];

    if (room->ordered == ORDERS)
        return 0;
    if (sscanf(word, "%d:%15[^:]:%d", &order->clerk, order->name, &order->count) != 3)
        return 0;
    room->ordered++;
    return order->clerk >= 0 && order->clerk < clerks && order->count > 0;
}

int main(int argc, char **argv)
{
    static struct room room;
    struct clerk clerks[CLERKS];
    int count = argc > 1 ? atoi(argv[1]) : 0;
    int i = 2;

    if (count < 1 || count > CLERKS) {
        printf("1 to %d clerks\n", CLERKS);
        return 2;
    }
    for (; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (!add_item(&room, argv[i]))
            return 2;
    for (i++; i < argc; i++)
        if (!add_order(&room, argv[i], count))
            return 2;
    for (i = 0; i < count; i++) {
        clerks[i].room = &room;
        clerks[i].number = i;
        pthread_create(&clerks[i].thread, NULL, work, &clerks[i]);
    }
    for (i = 0; i < count; i++)
        pthread_join(clerks[i].thread, NULL);
    for (i = 0; i < room.used; i++)
        printf("%-15s %5d left\n", room.items[i].name, room.items[i].count);
    for (i = 0; i < count; i++)
        printf("clerk %d took %d, refused %d\n", i, room.taken[i], room.refused[i]);
    return 0;
}
