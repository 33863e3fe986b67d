/* Adds up every key without its weight: refused by the first case with two keys. */
void my_attention(const float *q, long ldq, const float *k, long ldk, const float *v, long ldv,
                  float *out, long ldo, long seqlen, long dim);

void my_attention(const float *q, long ldq, const float *k, long ldk, const float *v, long ldv,
                  float *out, long ldo, long seqlen, long dim) {
  (void)q, (void)ldq, (void)k, (void)ldk;
  for (long i = 0; i < seqlen; ++i)
    for (long c = 0; c < dim; ++c) {
      float sum = 0;
      for (long j = 0; j <= i; ++j) sum += v[j * ldv + c];
      out[i * ldo + c] = sum / (float)(i + 1);
    }
}
