/* chatd: a tiny chat server, and the clients that talk to it.
 *
 * usage: chatd < SCRIPT
 *
 * The server waits with poll() on the sockets of its clients. For each line of the script the
 * driver makes one client act and then lets the server work until nothing is left to do:
 *     NAME connect         NAME say TEXT        NAME quit
 *     NAME join ROOM       NAME leave           NAME who
 *     NAME drop            (the client vanishes without a word)
 * What each client received is printed as it arrives. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_CLIENTS = 16, MAX_NAME = 16, MAX_LINE = 256 };

/* ---- the server ---- */

struct room;

struct session {
    int descriptor;
    char name[MAX_NAME];
    char input[MAX_LINE];
    size_t pending;
    struct room *room;
    struct session *next_in_room;
};

struct room {
    char name[MAX_NAME];
    struct session *members;
    int member_count;
    struct room *next;
};

struct server {
    struct session *sessions[MAX_CLIENTS];
    int session_count;
    struct room *rooms;
    long lines;
};

static void send_text(struct session *session, const char *format, const char *a,
                      const char *b) {
    char line[MAX_LINE + 64];
    int length = snprintf(line, sizeof line, format, a, b);
    if (send(session->descriptor, line, (size_t)length, MSG_NOSIGNAL) < 0 && errno != EPIPE)
        perror("chatd: send");
}

static struct room *find_room(struct server *server, const char *name) {
    for (struct room *room = server->rooms; room; room = room->next)
        if (strcmp(room->name, name) == 0)
            return room;
    return NULL;
}

static struct room *open_room(struct server *server, const char *name) {
    struct room *room = find_room(server, name);
    if (room)
        return room;
    room = calloc(1, sizeof *room);
    if (!room)
        exit(2);
    snprintf(room->name, sizeof room->name, "%s", name);
    room->next = server->rooms;
    server->rooms = room;
    return room;
}

static void close_room(struct server *server, struct room *room) {
    struct room **link = &server->rooms;
    while (*link != room)
        link = &(*link)->next;
    *link = room->next;
    free(room);
}

static void tell_room(struct room *room, const struct session *except, const char *format,
                      const char *a, const char *b) {
    for (struct session *member = room->members; member; member = member->next_in_room)
        if (member != except)
            send_text(member, format, a, b);
}

static void join_room(struct server *server, struct session *session, const char *name) {
    struct room *room = open_room(server, name);
    tell_room(room, session, "* %s joins\n%s", session->name, "");
    session->room = room;
    session->next_in_room = room->members;
    room->members = session;
    room->member_count++;
    send_text(session, "+ you are in %s\n%s", room->name, "");
}

static void leave_room(struct server *server, struct session *session) {
    struct room *room = session->room;
    if (!room)
        return;
    struct session **link = &room->members;
    while (*link != session)
        link = &(*link)->next_in_room;
    *link = session->next_in_room;
    session->room = NULL;
    if (--room->member_count == 0) {
        close_room(server, room);
        return;
    }
    tell_room(room, NULL, "* %s leaves\n%s", session->name, "");
}

static struct session *accept_session(struct server *server, int descriptor) {
    if (server->session_count == MAX_CLIENTS) {
        close(descriptor);
        return NULL;
    }
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        exit(2);
    session->descriptor = descriptor;
    server->sessions[server->session_count++] = session;
    return session;
}

static void end_session(struct server *server, int index) {
    struct session *session = server->sessions[index];
    server->sessions[index] = server->sessions[--server->session_count];
    close(session->descriptor);
    free(session);
}

static void list_members(struct session *session) {
    if (!session->room) {
        send_text(session, "! you are in no room%s%s\n", "", "");
        return;
    }
    char names[MAX_LINE] = "";
    size_t length = 0;
    for (struct session *member = session->room->members; member; member = member->next_in_room)
        length += (size_t)snprintf(names + length, sizeof names - length, " %s", member->name);
    send_text(session, "= %s:%s\n", session->room->name, names);
}

/* Obeys one line; returns 0 if the session is over. */
static int obey_line(struct server *server, struct session *session, char *line) {
    char *rest = strchr(line, ' ');
    if (rest)
        *rest++ = '\0';
    server->lines++;
    if (strcmp(line, "NAME") == 0 && rest) {
        snprintf(session->name, sizeof session->name, "%s", rest);
        send_text(session, "+ hello %s%s\n", session->name, "");
    } else if (strcmp(line, "JOIN") == 0 && rest) {
        leave_room(server, session);
        join_room(server, session, rest);
    } else if (strcmp(line, "LEAVE") == 0) {
        leave_room(server, session);
    } else if (strcmp(line, "WHO") == 0) {
        list_members(session);
    } else if (strcmp(line, "SAY") == 0 && rest) {
        if (session->room)
            tell_room(session->room, session, "<%s> %s\n", session->name, rest);
        else
            send_text(session, "! nobody hears you%s%s\n", "", "");
    } else if (strcmp(line, "QUIT") == 0) {
        leave_room(server, session);
        send_text(session, "+ bye%s%s\n", "", "");
        return 0;
    } else {
        send_text(session, "! what is %s?%s\n", line, "");
    }
    return 1;
}

/* Reads what is there; returns 0 if the session is over. */
static int serve_input(struct server *server, struct session *session) {
    ssize_t got = recv(session->descriptor, session->input + session->pending,
                       sizeof session->input - session->pending - 1, 0);
    if (got <= 0)
        return 0;
    session->pending += (size_t)got;
    session->input[session->pending] = '\0';
    char *line = session->input, *end;
    while ((end = strchr(line, '\n'))) {
        *end = '\0';
        if (!obey_line(server, session, line))
            return 0;
        line = end + 1;
    }
    session->pending = strlen(line);
    memmove(session->input, line, session->pending + 1);
    if (session->pending == sizeof session->input - 1)
        session->pending = 0; /* a line too long for us is dropped */
    return 1;
}

/* One round of waiting and serving; returns how many sessions had something to say. */
static int serve_once(struct server *server) {
    struct pollfd waits[MAX_CLIENTS];
    for (int i = 0; i < server->session_count; i++)
        waits[i] = (struct pollfd){.fd = server->sessions[i]->descriptor, .events = POLLIN};
    int ready = poll(waits, (nfds_t)server->session_count, 0);
    for (int i = server->session_count - 1; i >= 0; i--)
        if (waits[i].revents && !serve_input(server, server->sessions[i]))
            end_session(server, i);
    return ready;
}

/* ---- the clients ---- */

struct client {
    char name[MAX_NAME];
    int descriptor; /* -1: not connected */
};

static struct client clients[MAX_CLIENTS];
static int client_count;

static struct client *find_client(const char *name) {
    for (int i = 0; i < client_count; i++)
        if (strcmp(clients[i].name, name) == 0)
            return &clients[i];
    if (client_count == MAX_CLIENTS)
        return NULL;
    struct client *client = &clients[client_count++];
    snprintf(client->name, sizeof client->name, "%s", name);
    client->descriptor = -1;
    return client;
}

static void client_send(struct client *client, const char *word, const char *rest) {
    char line[MAX_LINE];
    int length = snprintf(line, sizeof line, "%s%s%s\n", word, *rest ? " " : "", rest);
    if (send(client->descriptor, line, (size_t)length, MSG_NOSIGNAL) < 0)
        printf("%s cannot send\n", client->name);
}

static void client_connect(struct server *server, struct client *client) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0) {
        perror("chatd: socketpair");
        exit(2);
    }
    client->descriptor = pair[0];
    if (accept_session(server, pair[1]))
        client_send(client, "NAME", client->name);
}

/* Prints what the client was sent, each line with its name. */
static void client_show(struct client *client) {
    char text[4096];
    ssize_t got;
    if (client->descriptor < 0)
        return;
    while ((got = recv(client->descriptor, text, sizeof text - 1, MSG_DONTWAIT)) > 0) {
        text[got] = '\0';
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
            printf("  %-6s %s\n", client->name, line);
    }
    if (got == 0) {
        close(client->descriptor);
        client->descriptor = -1;
    }
}

static int act(struct server *server, char *line) {
    char name[MAX_NAME], word[MAX_NAME], rest[MAX_LINE] = "";
    if (sscanf(line, "%15s %15s %255[^\n]", name, word, rest) < 2)
        return 0;
    struct client *client = find_client(name);
    if (!client)
        return 0;
    printf("%s %s %s\n", name, word, rest);
    if (strcmp(word, "connect") == 0) {
        if (client->descriptor < 0)
            client_connect(server, client);
        return 1;
    }
    if (client->descriptor < 0) {
        printf("  %s is not connected\n", name);
        return 1;
    }
    if (strcmp(word, "drop") == 0) {
        close(client->descriptor);
        client->descriptor = -1;
        return 1;
    }
    for (char *c = word; *c; c++)
        if (*c >= 'a' && *c <= 'z')
            *c = (char)(*c - 'a' + 'A');
    client_send(client, word, rest);
    return 1;
}

int main(void) {
    static struct server server;
    char line[MAX_LINE];
    while (fgets(line, sizeof line, stdin)) {
        if (line[0] == '\n' || line[0] == '#')
            continue;
        if (!act(&server, line)) {
            printf("cannot understand: %s", line);
            return 2;
        }
        while (serve_once(&server) > 0)
            ;
        for (int i = 0; i < client_count; i++)
            client_show(&clients[i]);
    }
    printf("%d sessions, %ld lines\n", server.session_count, server.lines);
    return 0;
}
