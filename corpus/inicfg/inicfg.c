/* inicfg: answers questions about layered configuration files.
 *
 * usage: inicfg [-f FILE]... QUERY...
 *
 * Files are in INI form; later ones override earlier ones. A section may inherit from another:
 * [child : parent]. A query is
 *     section.key          print the value, looked up through the parents
 *     section.key?default  the same, with a default
 *     section              print all keys of the section and its parents
 *     @                    print the names of all sections */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TEXT = 128 };

struct entry {
    char *key;
    char *value;
    struct entry *next;
};

struct section {
    char *name;
    char *parent_name; /* NULL if there is none */
    struct entry *entries;
    struct section *next;
};

struct config {
    struct section *sections;
    struct section *last;
    int problems;
};

static char *copy(const char *text) {
    char *fresh = malloc(strlen(text) + 1);
    if (!fresh) {
        fprintf(stderr, "inicfg: out of memory\n");
        exit(2);
    }
    return strcpy(fresh, text);
}

static char *trimmed(char *text) {
    while (isspace((unsigned char)*text))
        text++;
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1]))
        end--;
    *end = '\0';
    return text;
}

/* ---- building the configuration ---- */

static struct section *find_section(const struct config *config, const char *name) {
    for (struct section *section = config->sections; section; section = section->next)
        if (strcmp(section->name, name) == 0)
            return section;
    return NULL;
}

static struct section *add_section(struct config *config, const char *name) {
    struct section *section = find_section(config, name);
    if (section)
        return section;
    section = calloc(1, sizeof *section);
    if (!section)
        exit(2);
    section->name = copy(name);
    if (config->last)
        config->last->next = section;
    else
        config->sections = section;
    config->last = section;
    return section;
}

static struct entry *find_entry(const struct section *section, const char *key) {
    for (struct entry *entry = section->entries; entry; entry = entry->next)
        if (strcmp(entry->key, key) == 0)
            return entry;
    return NULL;
}

static void set_entry(struct section *section, const char *key, const char *value) {
    struct entry *entry = find_entry(section, key);
    if (entry) {
        free(entry->value);
        entry->value = copy(value);
        return;
    }
    struct entry **end = &section->entries;
    while (*end)
        end = &(*end)->next;
    entry = calloc(1, sizeof *entry);
    if (!entry)
        exit(2);
    entry->key = copy(key);
    entry->value = copy(value);
    *end = entry;
}

static void problem(struct config *config, const char *file, int line, const char *message) {
    printf("%s:%d: %s\n", file, line, message);
    config->problems++;
}

/* [name] or [name : parent] */
static struct section *read_heading(struct config *config, char *text) {
    char *close = strchr(text, ']');
    if (!close)
        return NULL;
    *close = '\0';
    char *colon = strchr(text, ':');
    char *parent = NULL;
    if (colon) {
        *colon = '\0';
        parent = trimmed(colon + 1);
    }
    struct section *section = add_section(config, trimmed(text + 1));
    if (parent) {
        free(section->parent_name);
        section->parent_name = copy(parent);
    }
    return section;
}

static void read_file(struct config *config, FILE *file, const char *name) {
    char line[MAX_TEXT];
    struct section *section = add_section(config, "global");
    for (int number = 1; fgets(line, sizeof line, file); number++) {
        char *text = trimmed(line);
        if (*text == '\0' || *text == '#' || *text == ';')
            continue;
        if (*text == '[') {
            struct section *next = read_heading(config, text);
            if (next)
                section = next;
            else
                problem(config, name, number, "heading without ]");
            continue;
        }
        char *equals = strchr(text, '=');
        if (!equals) {
            problem(config, name, number, "neither a heading nor an entry");
            continue;
        }
        *equals = '\0';
        set_entry(section, trimmed(text), trimmed(equals + 1));
    }
}

/* ---- looking up ---- */

static struct section *parent_of(const struct config *config, const struct section *section) {
    if (!section->parent_name)
        return NULL;
    return find_section(config, section->parent_name);
}

static const char *look_up(const struct config *config, const char *name, const char *key) {
    const struct section *section = find_section(config, name);
    int depth = 0;
    struct entry *entry = section ? find_entry(section, key) : NULL;
    while (section && !entry && section->parent_name && depth++ < 16) {
        section = parent_of(config, section);
        entry = find_entry(section, key);
    }
    return entry ? entry->value : NULL;
}

static void list_section(const struct config *config, const struct section *section, int depth) {
    if (depth > 16)
        return;
    for (struct entry *entry = section->entries; entry; entry = entry->next)
        printf("%*s%s = %s\n", depth * 2, "", entry->key, entry->value);
    const struct section *parent = parent_of(config, section);
    if (parent) {
        printf("%*sfrom %s:\n", depth * 2, "", parent->name);
        list_section(config, parent, depth + 1);
    }
}

/* ---- queries ---- */

static int answer_key(const struct config *config, char *name, char *key) {
    char *fallback = strchr(key, '?');
    if (fallback)
        *fallback++ = '\0';
    const char *value = look_up(config, name, key);
    if (!value)
        value = fallback;
    if (!value) {
        printf("%s.%s is not set\n", name, key);
        return 0;
    }
    printf("%s\n", value);
    return 1;
}

static int answer(const struct config *config, const char *query) {
    char text[MAX_TEXT];
    snprintf(text, sizeof text, "%s", query);
    if (strcmp(text, "@") == 0) {
        for (struct section *section = config->sections; section; section = section->next) {
            printf("%s", section->name);
            if (section->parent_name)
                printf(" : %s", section->parent_name);
            printf("\n");
        }
        return 1;
    }
    char *dot = strchr(text, '.');
    if (dot) {
        *dot = '\0';
        return answer_key(config, text, dot + 1);
    }
    struct section *section = find_section(config, text);
    if (!section) {
        printf("no section %s\n", text);
        return 0;
    }
    list_section(config, section, 0);
    return 1;
}

static void free_config(struct config *config) {
    while (config->sections) {
        struct section *section = config->sections;
        config->sections = section->next;
        while (section->entries) {
            struct entry *entry = section->entries;
            section->entries = entry->next;
            free(entry->key);
            free(entry->value);
            free(entry);
        }
        free(section->name);
        free(section->parent_name);
        free(section);
    }
}

int main(int argc, char **argv) {
    struct config config = {0};
    int i = 1, failures = 0;
    for (; i + 1 < argc && strcmp(argv[i], "-f") == 0; i += 2) {
        FILE *file = fopen(argv[i + 1], "r");
        if (!file) {
            fprintf(stderr, "inicfg: cannot open %s\n", argv[i + 1]);
            return 2;
        }
        read_file(&config, file, argv[i + 1]);
        fclose(file);
    }
    for (; i < argc; i++)
        if (!answer(&config, argv[i]))
            failures++;
    free_config(&config);
    return failures || config.problems ? 1 : 0;
}
