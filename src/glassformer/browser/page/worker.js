// The worker: loads the model, and answers the page one text after another, so that a request can be cancelled in between.

import { Encoder } from "./encoder.js";
import { Kernels, OutOfMemory, exactBuilds } from "./kernels.js";
import { Labels } from "./labels.js";
import { LanguageModel } from "./language_model.js";
import { Model, parsed } from "./model.js";
import { tokenizerOf } from "./tokenizer.js";
import { Translator } from "./translation.js";

let task;
const cancelled = new Set();
const receiveMessages = () => new Promise((resolve) => setTimeout(resolve)); // messages that wait are received

const METHODS = {
  /** `wanted`: the build to use. Default: the fastest that is exact. */
  load({ builds, model, wanted }) {
    const build = wanted ?? exactBuilds()[0];
    const [header, tables] = parsed(model);
    const kernels = new Kernels(builds[build]);
    const tokenizer = tokenizerOf(header.tokenizer);
    if (header.task === "translation") task = new Translator(new Model(kernels, header, tables), tokenizer);
    else if (header.task === "causal-lm") task = new LanguageModel(kernels, header, tables, tokenizer);
    else task = new Labels(new Encoder(kernels, header, tables), tokenizer);
    const { name, task: taskName, pipeline, languages = [], labels = [], inputs = [], confidence } = header;
    return { build, name, task: taskName, pipeline, languages, labels, inputs, hasConfidence: Boolean(confidence) };
  },
  translate: ({ text, options }) => task.translate(text, options),
  record: ({ text, options, target }) => task.record(text, options, target),
  continuations: ({ text, prefix, n, options }) => task.continuations(text, prefix, n, options),
  async complete({ text, options }, id) {
    for (const part of task.complete(text, options)) {
      await receiveMessages();
      if (cancelled.has(id)) return;
      postMessage({ id, part });
    }
  },
  predict: ({ text, pair }) => task.predict(text, pair),
};

let last = Promise.resolve();
onmessage = ({ data: { id, cancel, method, values } }) => {
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
