// The worker: loads the model, and answers the page one text after another, so that a request can be cancelled in between.

import { QuestionAnswerer } from "./answers.js";
import { SentenceEmbedder } from "./embeddings.js";
import { Encoder } from "./encoder.js";
import { Kernels, OutOfMemory, exactBuilds } from "./kernels.js";
import { Labels } from "./labels.js";
import { LanguageModel, Summarizer } from "./language_model.js";
import { MaskedLM } from "./masks.js";
import { Model } from "./model.js";
import { fetched, received } from "./model_file.js";
import { Tagger } from "./tags.js";
import { tokenizerOf } from "./tokenizer.js";
import { Translator } from "./translation.js";

/** @type {Record<string, new (encoder: Encoder, tokenizer: Tokenizer) => EncoderTask>} */
const OF_ENCODERS = {
  classification: Labels, regression: Labels, tagging: Tagger, "question-answering": QuestionAnswerer, "feature-extraction": SentenceEmbedder,
  "masked-lm": MaskedLM, "bert-pretraining": MaskedLM,
};
/** @type {Record<string, new (...values: ConstructorParameters<typeof LanguageModel>) => LanguageModel>} */
const OF_DECODERS = { "causal-lm": LanguageModel, summarization: Summarizer };

/** @type {any} the page calls only the methods that its model has */
let task;
/** @type {Set<number>} */
const cancelled = new Set();
const { port1, port2 } = new MessageChannel();
/** Messages that wait are received. Without a timer, which waits for 4 ms from the fifth call in a row on. */
const receiveMessages = () => new Promise((resolve) => {
  port1.onmessage = resolve;
  port2.postMessage(null);
});

/** @type {Record<string, (values: any, id: number) => unknown>} */
const METHODS = {
  /**
   * `model`: its bytes, or nothing: they are at `url`. `wanted`: the build to use. Default: the fastest that is exact.
   * @param {LoadRequest} values @param {number} id @returns {Promise<ModelDescription>}
   */
  async load({ builds, model, url, size, sum, wanted }, id) {
    const build = wanted ?? exactBuilds()[0];
    const kernels = new Kernels(builds[build]);
    const { header, base } = await (model ? received(kernels, [model], size, sum) : fetched(kernels, url, size, sum, (n) => postMessage({ id, part: n / size })))
      .catch((error) => { throw error instanceof OutOfMemory ? error : new Error(!model && error instanceof TypeError ? "noServer" : "damaged"); });
    if (model) /** @type {ArrayBuffer} */ (model.buffer).transfer?.(0); // its memory is free now, not some time later
    const tokenizer = tokenizerOf(header.tokenizer);
    if (OF_ENCODERS[header.task]) task = new OF_ENCODERS[header.task](new Encoder(kernels, header, base), tokenizer);
    else if (OF_DECODERS[header.task]) task = new OF_DECODERS[header.task](kernels, header, base, tokenizer);
    else task = new Translator(new Model(kernels, header, base), tokenizer);
    const { name, task: taskName, pipeline, languages = [], labels = [], inputs = [], tags = {}, confidence } = header;
    return { build, name, task: taskName, pipeline, languages, labels, inputs, tags: Object.keys(tags), hasConfidence: Boolean(confidence) };
  },
  translate: ({ text, options }) => task.translate(text, options),
  record: ({ text, options, target }) => task.record(text, options, target),
  lens: () => task.lens(),
  distribution: (values) => task.distribution(values),
  head: (values) => task.head(values),
  continuations: ({ text, prefix, n, options }) => task.continuations(text, prefix, n, options),
  async complete({ text, options }, id) {
    for (const part of task.complete(text, options)) {
      await receiveMessages();
      if (cancelled.has(id)) return;
      postMessage({ id, part });
    }
  },
  predict: (values) => task.predict(values),
  tag: (values) => task.tag(values),
  answer: (values) => task.answer(values),
  fill: (values) => task.fill(values),
  similarities: (values) => task.similarities(values),
  summarize: (values) => task.summarize(values),
};

let last = Promise.resolve();
onmessage = (/** @type {MessageEvent<CallMessage>} */ { data: { id, cancel, method, values } }) => {
  if (cancel) {
    cancelled.add(cancel);
    return;
  }
  last = last.then(async () => {
    await receiveMessages();
    if (cancelled.delete(id)) return;
    try {
      postMessage({ id, result: await METHODS[method](values, id) });
    } catch (error) {
      postMessage({ id, error: error instanceof OutOfMemory ? "memory" : error instanceof WebAssembly.CompileError ? "noWebAssembly" : error.message });
    } finally {
      cancelled.delete(id); // one that came too late
    }
  });
};
