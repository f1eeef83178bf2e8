// An exception thrown in a callback crosses the frames of qsort, C code.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

struct Guard {
    const char *name;
    ~Guard() { std::printf("unwound %s\n", name); }
};

static int compare(const void *a, const void *b)
{
    Guard guard{"compare"};
    int left = *static_cast<const int *>(a), right = *static_cast<const int *>(b);
    if (left == 13 || right == 13)
        throw std::runtime_error("unlucky");
    return left - right;
}

int main()
{
    int numbers[] = {13, 5};
    try {
        Guard guard{"main"};
        std::qsort(numbers, 2, sizeof numbers[0], compare);
        std::puts("FAILED: not thrown");
    } catch (const std::exception &error) {
        std::printf("caught %s\n", error.what());
    }
    std::puts("ok");
}
