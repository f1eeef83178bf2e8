/* rrsched: simulates a scheduler with priorities, time slices, blocking and ageing.
 *
 * Input, one order per line:
 *     slice N                      length of a time slice (default 3)
 *     age N                        raise the priority after waiting N ticks (0: never)
 *     task NAME PRIORITY ARRIVAL BURST [BURST ...]
 *
 * Bursts alternate between computing and waiting for input, computing first. Priorities go from
 * 0 (low) to 3 (high). The log shows who ran in each tick, then a table of times. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TASKS = 32, MAX_BURSTS = 16, LEVELS = 4, MAX_TICKS = 2000 };

enum state { STATE_NEW, STATE_READY, STATE_RUNNING, STATE_BLOCKED, STATE_DONE };

struct task {
    char name[16];
    int base_priority;
    int priority;
    int arrival;
    int bursts[MAX_BURSTS];
    int burst_count;

    enum state state;
    int burst;     /* which one is current */
    int remaining; /* ticks left in it */
    int slice;     /* ticks left before it must yield */
    int waited;    /* ticks in the ready queue since it last ran */

    int started;
    int finished;
    int cpu_time;
    int ready_time;
    int blocked_time;
    int switches;
};

struct queue {
    struct task *tasks[MAX_TASKS];
    int count;
};

struct scheduler {
    struct task tasks[MAX_TASKS];
    int task_count;
    int slice;
    int age;
    int now;
    struct queue ready[LEVELS];
    struct task *running;
    int idle_ticks;
    char log[MAX_TICKS];
    int log_length;
};

static void die(const char *message, int line) {
    fprintf(stderr, "rrsched: line %d: %s\n", line, message);
    exit(2);
}

/* ---- queues ---- */

static void push(struct queue *queue, struct task *task) {
    queue->tasks[queue->count++] = task;
}

static struct task *remove_at(struct queue *queue, int index) {
    struct task *task = queue->tasks[index];
    for (int i = index; i + 1 < queue->count; i++)
        queue->tasks[i] = queue->tasks[i + 1];
    queue->count--;
    return task;
}

static int index_of(const struct queue *queue, const struct task *task) {
    for (int i = 0; i < queue->count; i++)
        if (queue->tasks[i] == task)
            return i;
    return -1;
}

/* ---- state changes ---- */

static void make_ready(struct scheduler *scheduler, struct task *task) {
    task->state = STATE_READY;
    task->waited = 0;
    push(&scheduler->ready[task->priority], task);
}

static void admit_arrivals(struct scheduler *scheduler) {
    for (int i = 0; i < scheduler->task_count; i++) {
        struct task *task = &scheduler->tasks[i];
        if (task->state == STATE_NEW && task->arrival == scheduler->now) {
            task->remaining = task->bursts[0];
            task->slice = scheduler->slice;
            make_ready(scheduler, task);
        }
    }
}

static void wake_blocked(struct scheduler *scheduler) {
    for (int i = 0; i < scheduler->task_count; i++) {
        struct task *task = &scheduler->tasks[i];
        if (task->state != STATE_BLOCKED)
            continue;
        task->blocked_time++;
        if (--task->remaining > 0)
            continue;
        task->burst++;
        if (task->burst == task->burst_count) {
            task->state = STATE_DONE;
            task->finished = scheduler->now + 1;
            continue;
        }
        task->remaining = task->bursts[task->burst];
        make_ready(scheduler, task);
    }
}

static void raise_waiting(struct scheduler *scheduler) {
    if (scheduler->age == 0)
        return;
    for (int level = LEVELS - 2; level >= 0; level--) {
        struct queue *queue = &scheduler->ready[level];
        for (int i = 0; i < queue->count;) {
            struct task *task = queue->tasks[i];
            if (task->waited >= scheduler->age) {
                remove_at(queue, i);
                task->priority++;
                task->waited = 0;
                push(&scheduler->ready[task->priority], task);
            } else {
                i++;
            }
        }
    }
}

static struct task *best_ready(struct scheduler *scheduler) {
    for (int level = LEVELS - 1; level >= 0; level--)
        if (scheduler->ready[level].count > 0)
            return scheduler->ready[level].tasks[0];
    return NULL;
}

static void dispatch(struct scheduler *scheduler) {
    struct task *best = best_ready(scheduler);
    struct task *running = scheduler->running;
    if (!best)
        return;
    if (running) {
        if (best->priority <= running->priority)
            return;
        make_ready(scheduler, running);
        running->switches++;
    }
    struct queue *queue = &scheduler->ready[best->priority];
    remove_at(queue, index_of(queue, best));
    best->state = STATE_RUNNING;
    if (best->started < 0)
        best->started = scheduler->now;
    scheduler->running = best;
}

/* The running task computes for one tick, then may end its burst or its slice. */
static void run_tick(struct scheduler *scheduler) {
    struct task *task = scheduler->running;
    if (!task) {
        scheduler->log[scheduler->log_length++] = '.';
        scheduler->idle_ticks++;
        return;
    }
    scheduler->log[scheduler->log_length++] = task->name[0];
    task->cpu_time++;
    task->remaining--;
    task->slice--;
    if (task->remaining == 0) {
        scheduler->running = NULL;
        task->priority = task->base_priority;
        task->burst++;
        if (task->burst == task->burst_count) {
            task->state = STATE_DONE;
            task->finished = scheduler->now + 1;
        } else {
            task->state = STATE_BLOCKED;
            task->remaining = task->bursts[task->burst];
        }
    } else if (task->slice <= 0) {
        scheduler->running = NULL;
        task->priority = task->base_priority;
        task->slice = scheduler->slice;
        task->switches++;
        make_ready(scheduler, task);
    }
}

static void count_waiting(struct scheduler *scheduler) {
    for (int level = 0; level < LEVELS; level++) {
        struct queue *queue = &scheduler->ready[level];
        for (int i = 0; i < queue->count; i++) {
            queue->tasks[i]->waited++;
            queue->tasks[i]->ready_time++;
        }
    }
}

static int all_done(const struct scheduler *scheduler) {
    for (int i = 0; i < scheduler->task_count; i++)
        if (scheduler->tasks[i].state != STATE_DONE)
            return 0;
    return 1;
}

static void simulate(struct scheduler *scheduler) {
    while (!all_done(scheduler) && scheduler->log_length < MAX_TICKS) {
        admit_arrivals(scheduler);
        raise_waiting(scheduler);
        dispatch(scheduler);
        /* Before the tick: whoever blocks in it starts waiting in the next. */
        wake_blocked(scheduler);
        run_tick(scheduler);
        count_waiting(scheduler);
        scheduler->now++;
    }
}

/* ---- input ---- */

static void read_task(struct scheduler *scheduler, char *rest, int line) {
    if (scheduler->task_count == MAX_TASKS)
        die("too many tasks", line);
    struct task *task = &scheduler->tasks[scheduler->task_count];
    char *word = strtok(rest, " \t\n");
    if (!word)
        die("a task needs a name", line);
    snprintf(task->name, sizeof task->name, "%s", word);
    char *priority = strtok(NULL, " \t\n"), *arrival = strtok(NULL, " \t\n");
    if (!priority || !arrival)
        die("a task needs a priority and an arrival", line);
    task->base_priority = task->priority = atoi(priority);
    task->arrival = atoi(arrival);
    if (task->priority < 0 || task->priority >= LEVELS)
        die("no such priority", line);
    while ((word = strtok(NULL, " \t\n"))) {
        if (task->burst_count == MAX_BURSTS)
            die("too many bursts", line);
        int length = atoi(word);
        if (length <= 0)
            die("a burst must be positive", line);
        task->bursts[task->burst_count++] = length;
    }
    if (task->burst_count == 0)
        die("a task needs a burst", line);
    task->started = -1;
    scheduler->task_count++;
}

static void read_orders(struct scheduler *scheduler, FILE *file) {
    char line[256];
    for (int number = 1; fgets(line, sizeof line, file); number++) {
        char *word = strtok(line, " \t\n");
        if (!word || word[0] == '#')
            continue;
        char *rest = strtok(NULL, "\n");
        if (strcmp(word, "slice") == 0 && rest && atoi(rest) > 0)
            scheduler->slice = atoi(rest);
        else if (strcmp(word, "age") == 0 && rest && atoi(rest) >= 0)
            scheduler->age = atoi(rest);
        else if (strcmp(word, "task") == 0 && rest)
            read_task(scheduler, rest, number);
        else
            die("cannot understand this", number);
    }
}

/* ---- report ---- */

static void print_log(const struct scheduler *scheduler) {
    for (int begin = 0; begin < scheduler->log_length; begin += 50) {
        int length = scheduler->log_length - begin;
        if (length > 50)
            length = 50;
        printf("%4d %.*s\n", begin, length, scheduler->log + begin);
    }
}

static void print_table(const struct scheduler *scheduler) {
    long turnaround = 0, response = 0;
    printf("%-8s %5s %5s %5s %5s %5s %5s\n", "task", "start", "end", "cpu", "ready", "block",
           "out");
    for (int i = 0; i < scheduler->task_count; i++) {
        const struct task *task = &scheduler->tasks[i];
        printf("%-8s %5d %5d %5d %5d %5d %5d\n", task->name, task->started, task->finished,
               task->cpu_time, task->ready_time, task->blocked_time, task->switches);
        turnaround += task->finished - task->arrival;
        response += task->started - task->arrival;
    }
    if (scheduler->task_count > 0) {
        printf("mean turnaround %ld.%02ld, mean response %ld.%02ld, idle %d\n",
               turnaround / scheduler->task_count,
               turnaround * 100 / scheduler->task_count % 100, response / scheduler->task_count,
               response * 100 / scheduler->task_count % 100, scheduler->idle_ticks);
    }
}

int main(int argc, char **argv) {
    static struct scheduler scheduler = {.slice = 3};
    FILE *file = argc > 1 ? fopen(argv[1], "r") : stdin;
    if (!file) {
        fprintf(stderr, "rrsched: cannot open %s\n", argv[1]);
        return 2;
    }
    read_orders(&scheduler, file);
    simulate(&scheduler);
    print_log(&scheduler);
    print_table(&scheduler);
    return all_done(&scheduler) ? 0 : 1;
}
