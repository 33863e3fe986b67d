/* Attest's judge as a C library: libattest.so, plain C99. It holds results of attention that the
 * caller has against the exact ones, within error bounds derived from the inputs; it runs
 * campaigns on kernels of the caller's process; and it executes kernels of PTX on the host.
 *
 *     attest_attention call = {sizeof call, "hq=8,sq=128,d=64,mask=causal_br,dtype=bf16",
 *                              "p_cast_to_input"};
 *     call.Q = &q; call.K = &k; call.V = &v; call.got.O = &o;
 *     if (attest_judge(&call) != ATTEST_PASSED) puts(attest_text());
 *
 * Tensors and their axes are those of attest_kernel.h: Q, O, dO, dQ (batch, seqlen_q, num_heads_q,
 * head_dim); K, V, dK, dV (batch, seqlen_k, num_heads_kv, head_dim); LSE, dLSE (batch, num_heads_q,
 * seqlen_q); packed sequences have batch 1. Any strides that are not negative, on the CPU. Inputs
 * are read, never written. Calls may come from several threads at once.
 */
#ifndef ATTEST_API_H
#define ATTEST_API_H

#include "core/abi/attest_kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returned by every call; the exit codes of the `attest` command. */
typedef enum attest_outcome {
  ATTEST_PASSED = 0,         /* every element within its bound; or what was asked for is written */
  ATTEST_REFUSED = 1,        /* a result lies outside its bound */
  ATTEST_BAD_INPUT = 2,      /* the call makes no sense; nothing was judged */
  ATTEST_NOTHING_PROVED = 3, /* no bound covers it, or plainly wrong results would pass too */
  ATTEST_INTERNAL_ERROR = 5  /* Attest's own mistake */
} attest_outcome;

/* Results of attention; NULL where there is none. */
typedef struct attest_results {
  const attest_tensor *O, *LSE, *dQ, *dK, *dV;
  const attest_tensor *dSinks; /* where the problem has sinks, in f32 or f64 */
  const attest_tensor *dBias;  /* where it has a bias, of its type and shape */
} attest_results;

typedef struct attest_attention {
  size_t struct_size;
  const char *problem;         /* sizes, mask, features, dtype of Q, K, V, O, dO, dQ, dK, dV, like
                                * "b=2,hq=8,hkv=2,sq=17,sk=33,d=64,mask=causal_br,dtype=bf16":
                                * core/problem.hpp, docs/how-to/masks.md */
  const char *contract;        /* of the kernel's arithmetic, like "tensor_core" or
                                * "p_cast=bf16,exp_ulps=4,empty_row=nan": python/api/contract.hpp;
                                * NULL: all in f32, P not cast */
  const uint8_t *boolean_mask; /* (seqlen_q, seqlen_k), last axis fastest, or NULL: not 0 = visible,
                                * beside the problem's mask */
  const float *sinks; /* (num_heads_q), or NULL: in place of the problem's, which has none */
  const attest_tensor *Q, *K, *V;
  const attest_tensor *dO, *dLSE; /* gradients of O and LSE, or NULL; dLSE needs dO */
  const attest_tensor *bias; /* (batch, num_heads_q, seqlen_q, seqlen_k), each extent or 1 where it
                              * is the same along that axis, of the type of Q or f32; or NULL: in
                              * place of the problem's, which has none */
  const uint8_t *head_mask; /* of these extents, last axis fastest, or NULL: not 0 = visible, beside
                             * the problem's mask and in place of its mask of heads */
  int64_t head_mask_extents[4]; /* (batch, num_heads_q, seqlen_q, seqlen_k), each or 1 where it is
                                 * the same along that axis */
  attest_results got;           /* by the kernel in question; LSE in f32 or f64 */
} attest_attention;

/* Judges got.O, and got.LSE where it is given; with dO the gradients dQ, dK, dV too, and dSinks
 * and dBias where the problem has sinks and a bias. Their bounds start from
 * the O and LSE that forward stored. Where LSE is not given they hold for any LSE within forward's
 * bound. Long sequences (more than 2^22 pairs of a query and a key, or 2^15 queries) are judged by
 * a sample of rows and keys, dSinks whole. attest_text() says what is wrong: element, error, bound,
 * the term that dominates the bound, the known mistakes with the same result, and a contract under
 * which it would pass. Cost: time of a few exact references in float64 on all threads, of some
 * fifty where results are refused. */
ATTEST_EXPORT int attest_judge(const attest_attention *call);

/* Writes exact results to the tensors given: gradients need dO. `call->got` is ignored; so is
 * the contract, but for `empty_row` and `lse_base`. */
ATTEST_EXPORT int attest_reference(const attest_attention *call, const attest_results *exact);

/* Writes the bounds of each element to the tensors given. `proved`: every kernel that keeps the
 * contract is within; `probable`: exceeded with probability below 1e-12 under independent
 * roundings. Bounds of gradients need dO and got.O, and take got.LSE as attest_judge does. Either
 * may be NULL. */
ATTEST_EXPORT int attest_bounds(const attest_attention *call, const attest_results *proved,
                                const attest_results *probable);

/* Told after every check, and asked before it and before each smaller case that is tried, how many
 * checks are done of so many; from any thread, one at a time. Not 0 ends the campaign. */
typedef int (*attest_progress)(void *self, uint64_t done, uint64_t total);

/* Runs the campaign of `attest certify` on a kernel of attest_isolate, or of this process, whose
 * functions are called from several threads at once unless jobs=1. attest_text() is then its
 * certificate (JSON), with any outcome but ATTEST_BAD_INPUT and ATTEST_INTERNAL_ERROR;
 * ATTEST_NOTHING_PROVED is a certificate that is incomplete, or partial because `progress` ended
 * it. `contract` is as in attest_attention and takes the place of numerics, empty_row and
 * past_length of the description; NULL: they stand. `options`, NULL or "", are those of the command
 * with blanks between them: tier, seed, data_seed, cases, jobs, only, shard, problem (several),
 * like "tier=fast seed=7 shard=2/3 problem=hq=8,sq=128,d=64". `progress` may be NULL. */
ATTEST_EXPORT int attest_certify(const attest_kernel *kernel, const char *contract,
                                 const char *options, attest_progress progress, void *self);

/* Joins the certificates that attest_certify gave for shards of one campaign, on this kernel with
 * these options but for shard and jobs: attest_text() is what the campaign gives without shards,
 * byte for byte but for `timings`. Checks that no certificate has are run here, those of a missing
 * shard too; a `progress` that ends at once gives what is known, partial. */
ATTEST_EXPORT int attest_merge(const attest_kernel *kernel, const char *contract,
                               const char *options, const char *const *certificates, size_t count,
                               attest_progress progress, void *self);

/* Checks one law on one case, as a finding of a certificate has it:
 * "sq=17,d=64 values=normal seed=5 threads=1". Further lines of `case_line` say what else its
 * process does: "repeat=11", checks of the case until one fails; "after=sq=3,d=64", a case that is
 * checked before it, spelled as that is. With ATTEST_REFUSED attest_text() is the finding (JSON).
 */
ATTEST_EXPORT int attest_check(const attest_kernel *kernel, const char *contract,
                               const char *case_line, const char *law);

/* Starts a program whose kernel is then called in processes of its own, one for each thread that
 * calls: a crash, a hang or an exit of a call is a finding, and the campaign goes on. `command` is
 * the program's file and its words, NULL last; the program calls attest_serve. A process that is
 * started again gets one more word, "--described". `limits`, NULL or "", are "timeout=30
 * memory_limit=4096": seconds of one call, MiB that the process may allocate. `*kernel` is for
 * attest_certify and attest_check, until attest_release. */
ATTEST_EXPORT int attest_isolate(const char *const *command, const char *limits,
                                 const attest_kernel **kernel);

/* Ends the processes of a kernel of attest_isolate; NULL does nothing. */
ATTEST_EXPORT void attest_release(const attest_kernel *kernel);

/* May be called by such a program once it has read what it needs and before anything is called that
 * starts threads: each process that calls the kernel is then forked from this one and returns from
 * here, so that starting and reading is done once. Does nothing where a fork would not be like a
 * fresh process, as with threads, open files or CUDA, or where no certifier started this one. */
ATTEST_EXPORT void attest_fork_here(void);

/* The life of a program that attest_isolate started: carries out calls of the kernel, then ends the
 * process. Called once, when all that belongs to starting is done: the process must not change from
 * then on. `contract` is as in attest_certify; with a kernel that is NULL `refusal` says why there
 * is none. `file`, NULL or "" for none, holds the kernel's code: certificates identify its bytes.
 * Returns, with ATTEST_BAD_INPUT, where no certifier started this process. */
ATTEST_EXPORT int attest_serve(const attest_kernel *kernel, const char *contract,
                               const char *refusal, const char *file);

/* Kernel of a PTX text, read and checked for attest_ptx_launch. */
typedef struct attest_ptx attest_ptx;

/* Memory that a launched kernel may touch, to the byte. */
typedef struct attest_ptx_buffer {
  const char *name; /* for findings */
  void *data;
  size_t bytes;
} attest_ptx_buffer;

/* Value of a kernel's parameter; a pointer's is the host's address. */
typedef struct attest_ptx_value {
  const void *data;
  size_t bytes;
} attest_ptx_value;

typedef struct attest_ptx_shape {
  size_t struct_size;
  uint32_t grid[3], block[3];  /* blocks, and threads of one */
  size_t dynamic_shared_bytes; /* of a block */
  const attest_ptx_value *parameters;
  size_t parameter_count;
  const attest_ptx_buffer *buffers;
  size_t buffer_count;
} attest_ptx_shape;

/* Tensor that tensor copies (cp.async.bulk.tensor) move boxes of, the innermost dimension first. */
typedef struct attest_ptx_tensor {
  size_t struct_size;
  void *data;
  uint32_t element_bytes, dimensions;   /* 1, 2 or 4; 1 to 5 */
  uint64_t extents[5], stride_bytes[4]; /* strides of the outer dimensions */
  uint32_t box[5];                      /* elements that a copy moves */
  uint32_t swizzle_bytes;               /* 0, 32, 64 or 128 */
} attest_ptx_tensor;

/* Writes 128 bytes to `map`: the value of a parameter that is a tensor map, as attest_ptx_launch
 * takes it. ATTEST_BAD_INPUT where cuTensorMapEncodeTiled refuses. */
ATTEST_EXPORT int attest_ptx_tensor_map(const attest_ptx_tensor *tensor, void *map);

/* Reads a PTX text of version 7 to 9 and checks the kernel of that name; NULL or "": the only one.
 * With ATTEST_BAD_INPUT attest_text() names line and column, and the opcode that is not carried
 * out. `*loaded` is for attest_ptx_launch, until attest_ptx_release. */
ATTEST_EXPORT int attest_ptx_load(const char *text, const char *kernel, const attest_ptx **loaded);

/* Frees a kernel of attest_ptx_load; NULL does nothing. */
ATTEST_EXPORT void attest_ptx_release(const attest_ptx *loaded);

/* Executes a launch on the host, on all threads. attest_text() is then a report (JSON):
 *     {"blocks_given_up": 0, "shared_bytes": 2048,
 *      "buffers": [{"read_bytes": 4000, "written_bytes": 0}],
 *      "findings": [{"fault": "race", "text": "… (PTX line 95)", "file": "softmax.py", "line": 9,
 *                    "block": [0, 0, 0]}]}
 * ATTEST_REFUSED where there are findings: races, accesses outside the buffers, shared memory read
 * before it is written, barriers that some threads miss, blocks that do not end. `file` and `line`
 * are those of what was compiled (.loc), line 0 where the text does not say. `shared_bytes`: of a
 * block, static and dynamic. Bytes are counted by buffer, in the order given; those of buffers that
 * lie on one another by the first. */
ATTEST_EXPORT int attest_ptx_launch(const attest_ptx *loaded, const attest_ptx_shape *shape);

/* Says why the last call of this thread did not return ATTEST_PASSED; "" where it did, unless
 * the call says otherwise. Valid until this thread's next call. */
ATTEST_EXPORT const char *attest_text(void);

/* Returns the version of Attest, like "0.2.0". */
ATTEST_EXPORT const char *attest_version(void);

#ifdef __cplusplus
}
#endif

#endif /* ATTEST_API_H */
