// An exception nobody catches: std::terminate, then SIGABRT.
#include <cstdio>
#include <stdexcept>
int main()
{
    std::puts("before");
    std::fflush(stdout);
    throw std::runtime_error("nobody catches this");
}
