// The library that loads_library.c opens at run time.
#include <stdio.h>
static int calls;
static __thread int per_thread = 10;
__attribute__((constructor)) static void loaded(void) { puts("plugin loaded"); }
__attribute__((destructor)) static void unloaded(void) { puts("plugin unloaded"); }
int plugin_call(int n) { return n * ++calls + per_thread++; }
int plugin_value = 77;
