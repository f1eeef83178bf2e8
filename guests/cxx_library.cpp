// Streams, containers, regular expressions, virtual calls, locale-free formatting.
#include <algorithm>
#include <cstdio>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <regex>
#include <sstream>
#include <unordered_map>
#include <vector>

struct Shape { virtual ~Shape() = default; virtual double area() const = 0; };
struct Square : Shape { double s; explicit Square(double v) : s(v) {} double area() const override { return s * s; } };
struct Circle : Shape { double r; explicit Circle(double v) : r(v) {} double area() const override { return 3.14159 * r * r; } };

int main()
{
    std::vector<std::unique_ptr<Shape>> shapes;
    for (int i = 1; i < 6; i++) {
        if (i % 2) shapes.push_back(std::make_unique<Square>(i));
        else shapes.push_back(std::make_unique<Circle>(i));
    }
    double sum = 0;
    for (auto &shape : shapes) sum += shape->area();
    std::cout << std::setprecision(10) << sum << "\n";
    std::map<std::string, int> count;
    std::istringstream words("the quick brown fox jumps over the lazy dog the end");
    for (std::string word; words >> word;) count[word]++;
    for (auto &[word, n] : count) std::cout << word << "=" << n << " ";
    std::cout << "\n";
    std::unordered_map<int, int> squares;
    for (int i = 0; i < 10000; i++) squares[i] = i * i;
    long long total = 0;
    for (int i = 0; i < 10000; i++) total += squares.at(i);
    std::cout << total << "\n";
    std::cout << std::regex_replace("a1b22c333", std::regex("[0-9]+"), "#") << "\n";
    std::vector<int> v(1000);
    std::iota(v.begin(), v.end(), 0);
    std::sort(v.begin(), v.end(), [](int a, int b) { return a * 7919 % 1000 < b * 7919 % 1000; });
    std::cout << v[0] << " " << v[500] << " " << v[999] << "\nok\n";
}
