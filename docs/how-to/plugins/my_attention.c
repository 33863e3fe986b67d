/* The kernel that shim.c adapts: causal attention of one head in float32, one pass over the keys.
 * Rows are of dim floats, the next row ld floats on. */
#include <math.h>

void my_attention(const float *q, long ldq, const float *k, long ldk, const float *v, long ldv,
                  float *out, long ldo, long seqlen, long dim) {
  const float scale = 1.0f / sqrtf((float)dim);
  for (long i = 0; i < seqlen; ++i) {
    float largest = -INFINITY, sum = 0;
    for (long c = 0; c < dim; ++c) out[i * ldo + c] = 0;
    for (long j = 0; j <= i; ++j) {
      float score = 0;
      for (long c = 0; c < dim; ++c) score += q[i * ldq + c] * k[j * ldk + c];
      score *= scale;
      const float maximum = fmaxf(largest, score);
      const float shrink = expf(largest - maximum), weight = expf(score - maximum);
      for (long c = 0; c < dim; ++c)
        out[i * ldo + c] = out[i * ldo + c] * shrink + weight * v[j * ldv + c];
      sum = sum * shrink + weight;
      largest = maximum;
    }
    for (long c = 0; c < dim; ++c) out[i * ldo + c] /= sum;
  }
}
