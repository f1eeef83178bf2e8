// bigint: arithmetic on whole numbers of any length.
//
// Input lines: `A op B` with op one of + - * / % ^ < = gcd, or `fact N`, `fib N`, `digits A`.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

// Sign and magnitude; the magnitude in base 10^9, lowest part first, without leading zeros.
class Big {
  public:
    Big() = default;
    Big(long long value) : negative_(value < 0) {
        unsigned long long rest =
            value < 0 ? 0ull - static_cast<unsigned long long>(value) : static_cast<unsigned long long>(value);
        for (; rest > 0; rest /= BASE)
            parts_.push_back(static_cast<uint32_t>(rest % BASE));
    }

    static Big parse(const std::string &text) {
        Big result;
        std::size_t begin = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
        if (begin == text.size() || text.find_first_not_of("0123456789", begin) != std::string::npos)
            throw std::invalid_argument("not a number: " + text);
        for (std::size_t end = text.size(); end > begin;) {
            std::size_t from = end - begin >= DIGITS ? end - DIGITS : begin;
            result.parts_.push_back(
                static_cast<uint32_t>(std::stoul(text.substr(from, end - from))));
            end = from;
        }
        result.negative_ = text[0] == '-';
        result.trim();
        return result;
    }

    std::string text() const {
        if (parts_.empty())
            return "0";
        std::string result = negative_ ? "-" : "";
        result += std::to_string(parts_.back());
        for (std::size_t i = parts_.size() - 1; i-- > 0;) {
            std::string part = std::to_string(parts_[i]);
            result += std::string(DIGITS - part.size(), '0') + part;
        }
        return result;
    }

    bool is_zero() const { return parts_.empty(); }
    bool is_negative() const { return negative_; }

    Big negated() const {
        Big result = *this;
        result.negative_ = !negative_ && !parts_.empty();
        return result;
    }

    static int compare(const Big &a, const Big &b) {
        if (a.negative_ != b.negative_)
            return a.negative_ ? -1 : 1;
        int order = compare_magnitudes(a.parts_, b.parts_);
        return a.negative_ ? -order : order;
    }

    friend Big operator+(const Big &a, const Big &b) {
        Big result;
        if (a.negative_ == b.negative_) {
            result.parts_ = add(a.parts_, b.parts_);
            result.negative_ = a.negative_;
        } else if (compare_magnitudes(a.parts_, b.parts_) >= 0) {
            result.parts_ = subtract(a.parts_, b.parts_);
            result.negative_ = a.negative_;
        } else {
            result.parts_ = subtract(b.parts_, a.parts_);
            result.negative_ = b.negative_;
        }
        result.trim();
        return result;
    }

    friend Big operator-(const Big &a, const Big &b) { return a + b.negated(); }

    friend Big operator*(const Big &a, const Big &b) {
        Big result;
        result.parts_.assign(a.parts_.size() + b.parts_.size(), 0);
        for (std::size_t i = 0; i < a.parts_.size(); i++) {
            uint64_t carry = 0;
            for (std::size_t j = 0; j < b.parts_.size(); j++) {
                uint64_t sum = result.parts_[i + j] + carry +
                               static_cast<uint64_t>(a.parts_[i]) * b.parts_[j];
                result.parts_[i + j] = static_cast<uint32_t>(sum % BASE);
                carry = sum / BASE;
            }
            result.parts_[i + b.parts_.size()] += static_cast<uint32_t>(carry);
        }
        result.negative_ = a.negative_ != b.negative_;
        result.trim();
        return result;
    }

    // Long division towards zero; the remainder has the sign of the dividend.
    static void divide(const Big &a, const Big &b, Big &quotient, Big &remainder) {
        if (b.is_zero())
            throw std::domain_error("division by zero");
        quotient = Big();
        remainder = Big();
        quotient.parts_.assign(a.parts_.size(), 0);
        Big divisor = b;
        divisor.negative_ = false;
        for (std::size_t i = a.parts_.size(); i-- > 0;) {
            remainder.parts_.insert(remainder.parts_.begin(), a.parts_[i]);
            remainder.trim();
            quotient.parts_[i] = estimate(remainder, divisor);
            remainder = remainder - divisor * Big(quotient.parts_[i]);
        }
        quotient.negative_ = a.negative_ != b.negative_;
        quotient.trim();
        remainder.negative_ = a.negative_;
        remainder.trim();
    }

    std::size_t digits() const { return text().size() - (negative_ ? 1 : 0); }

  private:
    static constexpr uint32_t BASE = 1000000000;
    static constexpr std::size_t DIGITS = 9;
    using Parts = std::vector<uint32_t>;

    // The largest q below the base with divisor * q <= remainder, by bisection.
    static uint32_t estimate(const Big &remainder, const Big &divisor) {
        uint32_t low = 0, high = BASE - 1;
        while (low < high) {
            uint32_t middle = low + (high - low + 1) / 2;
            if (compare(divisor * Big(middle), remainder) <= 0)
                low = middle;
            else
                high = middle - 1;
        }
        return low;
    }

    static int compare_magnitudes(const Parts &a, const Parts &b) {
        if (a.size() != b.size())
            return a.size() < b.size() ? -1 : 1;
        for (std::size_t i = a.size(); i-- > 0;)
            if (a[i] != b[i])
                return a[i] < b[i] ? -1 : 1;
        return 0;
    }

    static Parts add(const Parts &a, const Parts &b) {
        Parts sum;
        uint32_t carry = 0;
        for (std::size_t i = 0; i < std::max(a.size(), b.size()) || carry; i++) {
            uint32_t part = carry;
            part += i < a.size() ? a[i] : 0;
            part += i < b.size() ? b[i] : 0;
            carry = part >= BASE;
            sum.push_back(carry ? part - BASE : part);
        }
        return sum;
    }

    // Needs a >= b.
    static Parts subtract(const Parts &a, const Parts &b) {
        Parts difference;
        int64_t borrow = 0;
        for (std::size_t i = 0; i < a.size(); i++) {
            int64_t part = static_cast<int64_t>(a[i]) - borrow;
            part -= i < b.size() ? b[i] : 0;
            borrow = part <= 0;
            difference.push_back(static_cast<uint32_t>(borrow ? part + BASE : part));
        }
        return difference;
    }

    void trim() {
        while (!parts_.empty() && parts_.back() == 0)
            parts_.pop_back();
        if (parts_.empty())
            negative_ = false;
    }

    Parts parts_;
    bool negative_ = false;
};

Big power(Big base, const Big &exponent) {
    if (exponent.is_negative())
        throw std::domain_error("negative exponent");
    Big result(1), rest = exponent, half, bit;
    while (!rest.is_zero()) {
        Big::divide(rest, Big(2), half, bit);
        if (!bit.is_zero())
            result = result * base;
        base = base * base;
        rest = half;
    }
    return result;
}

Big gcd(Big a, Big b) {
    Big quotient, rest;
    while (!b.is_zero()) {
        Big::divide(a, b, quotient, rest);
        a = b;
        b = rest;
    }
    return a.is_negative() ? a.negated() : a;
}

Big factorial(long n) {
    Big result(1);
    for (long i = 2; i <= n; i++)
        result = result * Big(i);
    return result;
}

Big fibonacci(long n) {
    Big a(0), b(1);
    for (; n > 0; n--) {
        Big next = a + b;
        a = b;
        b = next;
    }
    return a;
}

std::string binary(const std::string &left, const std::string &operation,
                   const std::string &right) {
    Big a = Big::parse(left), b = Big::parse(right), quotient, remainder;
    if (operation == "+")
        return (a + b).text();
    if (operation == "-")
        return (a - b).text();
    if (operation == "*")
        return (a * b).text();
    if (operation == "^")
        return power(a, b).text();
    if (operation == "<")
        return Big::compare(a, b) < 0 ? "yes" : "no";
    if (operation == "=")
        return Big::compare(a, b) == 0 ? "yes" : "no";
    if (operation == "gcd")
        return gcd(a, b).text();
    if (operation != "/" && operation != "%")
        throw std::invalid_argument("no such operation: " + operation);
    Big::divide(a, b, quotient, remainder);
    return (operation == "/" ? quotient : remainder).text();
}

std::string answer(const std::string &line) {
    std::istringstream words(line);
    std::string first, second, third;
    words >> first >> second >> third;
    if (first == "fact")
        return factorial(std::stol(second)).text();
    if (first == "fib")
        return fibonacci(std::stol(second)).text();
    if (first == "digits")
        return std::to_string(Big::parse(second).digits());
    return binary(first, second, third);
}

} // namespace

int main() {
    std::string line;
    int errors = 0;
    while (std::getline(std::cin, line)) {
        if (line.empty())
            continue;
        try {
            std::cout << answer(line) << "\n";
        } catch (const std::exception &error) {
            std::cout << "error: " << error.what() << "\n";
            errors++;
        }
    }
    return errors > 0;
}
