/* SPDX-License-Identifier: MIT */
#include "train_math.h"

#include <stdint.h>
#include <string.h>

#define LN2_HIGH 0.69314718036912381649 /* 32 bits, so that a product with a small integer is exact */
#define LN2_LOW 1.9082149292705877e-10

double train_power_of_two(int n)
{
    const uint64_t bits = (uint64_t)(n + 1023) << 52;
    double result;
    memcpy(&result, &bits, sizeof result);
    return result;
}

double train_ln(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int power = (int)(bits >> 52 & 2047) - 1023;
    bits = (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1023 << 52;
    memcpy(&x, &bits, sizeof x); /* 1 to 2 */
    if (x > 1.4142135623730951) {
        x /= 2;
        power++;
    }
    /* ln x = 2 (t + t^3/3 + t^5/5 + ...), |t| <= 0.172 */
    const double t = (x - 1) / (x + 1), square = t * t;
    double sum = 0;
    for (int k = 23; k >= 1; k -= 2)
        sum = sum * square + 1.0 / k;
    return power * LN2_HIGH + (2 * t * sum + power * LN2_LOW);
}

double train_exp(double x)
{
    const int power = (int)(x * 1.4426950408889634 + (x < 0 ? -0.5 : 0.5));
    const double rest = (x - power * LN2_HIGH) - power * LN2_LOW; /* |rest| <= 0.35 */
    double sum = 1;
    for (int k = 14; k >= 1; k--)
        sum = 1 + sum * rest / k;
    return sum * train_power_of_two(power);
}

double train_digamma(double x)
{
    double result = 0;
    for (; x < 7; x++)
        result -= 1 / x;
    x -= 0.5;
    const double one = 1 / x, two = one * one, four = two * two;
    return result + train_ln(x) + 1.0 / 24 * two - 7.0 / 960 * four + 31.0 / 8064 * four * two -
           127.0 / 30720 * four * four;
}
