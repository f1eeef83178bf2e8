// Each thread throws and catches; one carries its exception to the main thread.
#include <cstdio>
#include <exception>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

int main()
{
    std::vector<int> caught(4);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
        threads.emplace_back([t, &caught] {
            for (int i = 0; i < 100; i++)
                try { throw t; } catch (int n) { caught[static_cast<std::size_t>(t)] += n; }
        });
    for (auto &thread : threads) thread.join();
    for (int n : caught) std::printf("%d\n", n);
    auto future = std::async(std::launch::async, []() -> int { throw std::runtime_error("from afar"); });
    try { future.get(); } catch (const std::exception &error) { std::puts(error.what()); }
    std::puts("ok");
}
