/* SPDX-License-Identifier: MIT */
/*
 * train_math.h - logarithms for trainers. The C library chooses its own by the processor, and they may differ in the
 * last bit. These are made of additions, multiplications, and divisions only, so the same program writes the same
 * vocabulary on every processor that it runs on.
 */
#ifndef TOKMAP_TRAIN_TRAIN_MATH_H
#define TOKMAP_TRAIN_TRAIN_MATH_H

/* Return the natural logarithm of a positive, finite, normal number, e to the power x for |x| <= 700, and 2^n for n
 * from -1022 to 1023. The relative error is below 1e-14. */
double train_ln(double x);
double train_exp(double x);
double train_power_of_two(int n);

/* Returns the derivative of the logarithm of the gamma function, for x > 0, as SentencePiece computes it. */
double train_digamma(double x);

#endif
