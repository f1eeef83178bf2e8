// Rethrow, throw while handling, nested exceptions, catch by base class.
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

struct Base { virtual ~Base() = default; virtual int code() const { return 1; } };
struct Derived : Base { int code() const override { return 2; } };

static void explain(const std::exception &error, int depth)
{
    std::printf("%*s%s\n", depth * 2, "", error.what());
    try {
        std::rethrow_if_nested(error);
    } catch (const std::exception &inner) {
        explain(inner, depth + 1);
    }
}

static int deep(int depth)
{
    std::string owned(static_cast<std::size_t>(depth), 'x');
    if (depth == 0)
        throw Derived();
    return deep(depth - 1) + static_cast<int>(owned.size());
}

int main()
{
    int rethrown = 0;
    try {
        try { deep(200); }
        catch (Base &) { rethrown++; throw; }
    } catch (const Base &error) {
        std::printf("rethrown %d code %d\n", rethrown, error.code());
    }
    try {
        try { std::vector<int>().at(3); }
        catch (...) { std::throw_with_nested(std::logic_error("outer")); }
    } catch (const std::exception &error) {
        (void)error;
        std::puts("nested:");
        try { std::rethrow_if_nested(error); } catch (const std::out_of_range &) { std::puts("  out_of_range"); }
    }
    try {
        try { throw std::runtime_error("inner"); }
        catch (...) { std::throw_with_nested(std::runtime_error("middle")); }
    } catch (const std::exception &error) { explain(error, 0); }
    long total = 0;
    for (int i = 0; i < 2000; i++) {
        try { if (i % 3 == 0) throw i; total += 1; } catch (int n) { total += n; }
    }
    std::printf("total %ld\nok\n", total);
}
