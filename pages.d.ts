// Types for `tsc`, which checks the JavaScript of the pages: the records that pass between its modules, and what browsers have.
// The modules name them in their comments. No page contains this file.

import * as pageApi from "./src/glassformer/browser/page/api.js";
import * as baseTokenizer from "./src/glassformer/browser/page/base_tokenizer.js";
import * as encoder from "./src/glassformer/browser/page/encoder.js";
import * as encoderTask from "./src/glassformer/browser/page/encoder_task.js";
import * as inlines from "./src/glassformer/browser/page/inline.js";
import * as pageInspect from "./src/glassformer/browser/page/inspect.js";
import * as kernels from "./src/glassformer/browser/page/kernels.js";
import * as languageModel from "./src/glassformer/browser/page/language_model.js";
import * as models from "./src/glassformer/browser/page/model.js";
import * as searches from "./src/glassformer/browser/page/search.js";
import * as terms from "./src/glassformer/browser/page/terms.js";
import * as translation from "./src/glassformer/browser/page/translation.js";
import * as serverApi from "./src/glassformer/serve/page/api.js";
import * as serverInspect from "./src/glassformer/serve/page/inspect.js";

declare global {
  const d3: any;
  const Plot: any;

  interface Array<T> {
    findLast(isFound: (item: T, index: number) => unknown): T | undefined;
    findLastIndex(isFound: (item: T, index: number) => unknown): number;
    toReversed(): T[];
  }
  interface Document {
    caretPositionFromPoint(x: number, y: number): { offsetNode: Node; offset: number } | null;
  }
  interface Window {
    CSS: { highlights: Map<string, unknown> };
    Highlight: new (...ranges: Range[]) => unknown;
    DecompressionStream: new (format: string) => ReadableWritablePair<Uint8Array, BufferSource>;
  }
  interface Float64Array {
    findLastIndex(isFound: (item: number, index: number) => unknown): number;
  }
  interface String {
    toWellFormed(): string;
  }
  interface ArrayBuffer {
    transfer?(size: number): ArrayBuffer;
  }
  interface Uint8ArrayConstructor {
    fromBase64?(text: string): Bytes;
  }
  /** Uint8Array; in TypeScript from 5.7 on, of an ArrayBuffer. */
  type Bytes = ReturnType<Uint8ArrayConstructor["of"]>;

  type Kernels = kernels.Kernels;
  type Tables = kernels.Tables;
  type Program = kernels.Program;
  type Encoder = encoder.Encoder;
  type EncoderTask = encoderTask.EncoderTask;
  type LanguageModel = languageModel.LanguageModel;
  type Model = models.Model;
  type Tokenizer = baseTokenizer.Tokenizer;
  type Translator = translation.Translator;
  type Glossary = terms.Glossary;
  type Searches = searches.Searches;
  type Inline = inlines.Inline;

  /** The exports of the kernels: program.h. */
  interface KernelExports {
    memory: WebAssembly.Memory;
    __heap_base: WebAssembly.Global;
    size_of(structure: number): number;
    run(program: number, rows: number): void;
    log_sum_exp(numbers: number, n: number): number;
    largest(numbers: number, n: number, k: number, values: number, indices: number): void;
    n_larger(numbers: number, n: number, than: number): number;
  }

  /** A buffer of a program and its first column. */
  type Place = [buffer: number, column: number];

  /** An instruction of a program. `tables`: their addresses, from that of all tables; -1: none. */
  interface Instruction {
    kind: number;
    out: Place;
    a: Place;
    b: Place;
    n: number;
    m: number;
    option: number;
    cache: number;
    number: number;
    group: number;
    reach: number;
    activation: number;
    tables: number[];
  }

  interface ProgramRecord {
    widths: number[];
    cache_widths: number[];
    instructions: Instruction[];
  }

  type AttentionKind = "encoder" | "decoder" | "cross";

  /** An attention of a program that keeps its queries, keys and values: the buffers that have them. */
  interface AttentionRecord {
    kind: AttentionKind;
    layer: number;
    cache: number;
    n_heads: number;
    n_kv_heads: number;
    d_head: number;
    scale: number;
    queries: number;
    keys: number;
    values: number;
    reach: number;
    bias: number;
    projection?: { tables: number[]; column: number; width: number };
  }

  type Projection = "queries" | "keys" | "values";

  /** A program that keeps what it computes in between. `stream`: a buffer for each sub-layer. */
  interface ReadingRecord extends ProgramRecord {
    attentions: AttentionRecord[];
    stream: [path: string, buffer: number][];
    first_input: number;
  }

  /** A head that is switched off. */
  type HeadOff = [kind: AttentionKind, layer: number, head: number];

  /** The inputs of a run of a program. */
  interface Batch {
    ids: Int32Array;
    positions: Int32Array;
    types?: Int32Array;
    slots: Int32Array;
    lists: Int32Array[];
    begins: Int32Array[];
    lengths: Int32Array[];
  }

  interface Confidence {
    mean: number[];
    scale: number[];
    coefficients: number[];
  }

  /** The header of the file of a model: browser/model_file.py. */
  interface Header {
    name: string;
    task: string;
    pipeline: string | null;
    family: string;
    sizes: { d_model: number };
    max_len: number;
    vocab_size: number;
    bos: number;
    eos: number;
    tokenizer: TokenizerRecord;
    encode: ProgramRecord;
    decode: ProgramRecord;
    score: ProgramRecord;
    lens: ProgramRecord | null;
    read_source: ReadingRecord;
    read_target: ReadingRecord;
    // of translators
    languages?: string[];
    tags?: Record<string, number>;
    codes?: number[];
    more_tokens?: number;
    beam?: number;
    length_penalty?: number;
    patterns?: Record<string, string>;
    words?: WordsRecord | null;
    letters?: string | null;
    translates_letterless?: boolean;
    n_sentences?: number;
    confidence?: Confidence | null;
    n_own_caches?: number;
    // of decoders
    top_k?: number;
    no_repeat?: number;
    has_start?: boolean;
    ends?: number[];
    prefill?: ProgramRecord;
    max_summary?: number;
    longest_source?: number;
    // of encoders
    labels?: string[];
    inputs?: string[];
    pooling?: string;
    n_separators?: number;
    may_find_none?: boolean;
    max_type?: number;
    head?: ProgramRecord | null;
    mask_id?: number;
    masks?: string[];
    tokens_include_space?: boolean;
  }

  /** A tokenizer: browser/tokenizer_record.py. */
  interface TokenizerRecord {
    kind: string;
    vocab: string[];
    specials: number[];
    prefix: string;
    space: string; // before a text that follows another one
    first: number[];
    unknown: number | null;
    targets: TokenizerRecord | null;
    merges?: string[];
    scores?: number[];
    lowercase?: boolean;
    strip_accents?: boolean;
    max_word?: number;
    byte_fallback?: boolean;
    added?: string[];
    normalizers?: TokenizerStep[];
    splitters?: TokenizerStep[];
    decoders?: TokenizerStep[];
  }

  interface TokenizerStep {
    type: string;
    map?: string;
    pattern?: string;
    content?: string;
    prepend?: string;
    split?: boolean;
    start?: number;
  }

  /** Begin and end of characters, in UTF-16. */
  type Span = [start: number, end: number];

  /** A token: its id, and begin and end of its characters, in UTF-16. */
  type Token = [id: number, start: number, end: number];

  /** A token of an encoder: its id, and begin and end of its characters, in UTF-16. */
  type SpanToken = [id: number, span: Span];

  /** A character, and begin and end of what it was made of. */
  type Character = [character: string, start: number, end: number];

  /** Pairs of a source word and a target word. */
  type Alignment = number[][];

  /** Where a span belongs in a translation: at a unit, or after the unit before. */
  type Position = [unit: number, closes: boolean];

  /** The body of a request for translations. */
  interface TranslationRequest {
    q: string | string[];
    source?: string;
    target?: string;
    prefix?: string;
    alternatives?: number;
    beam?: number;
    terms?: string[][];
    tag?: string;
    align?: boolean;
    confidence?: boolean;
  }

  /** The body of a request for a continuation. */
  interface CompletionRequest {
    prompt: string;
    max_tokens: number;
    temperature: number;
    model?: string;
  }

  interface FileProgress {
    progress: (done: number, total: number) => void;
    say?: Say;
    signal?: AbortSignal;
  }

  /** What the worker needs to load a model: its bytes, or where they are; their number and checksum. */
  interface LoadRequest {
    builds: Record<string, BufferSource>;
    model?: Bytes;
    url?: string;
    size: number;
    sum: number;
    wanted?: string;
  }

  /** What the page knows of its model. */
  interface ModelDescription {
    build: string;
    name: string;
    task: string;
    pipeline: string | null;
    languages: string[];
    labels: string[];
    inputs: string[];
    tags: string[];
    hasConfidence: boolean;
  }

  /** A message to the worker: a call of a method, or the number of a call that is cancelled. */
  interface CallMessage {
    id?: number;
    method?: string;
    values?: object;
    cancel?: number;
  }

  /** A message of the worker: a part of a result, the result, or an error. */
  interface AnswerMessage {
    id: number;
    part?: unknown;
    result?: unknown;
    error?: string;
  }

  /** A call that waits for its answer. */
  interface PendingCall {
    resolve: (value: unknown) => void;
    reject: (error: unknown) => void;
    receive?: (part: unknown) => void;
  }

  /** What is found for a text of the model. */
  interface Hypothesis {
    ids: number[];
    logProbs: number[];
    score: number;
  }

  /** A hypothesis that goes on. `slots`: of its tokens in the caches. */
  interface OpenHypothesis {
    ids: number[];
    logProbs: number[];
    slots: number[];
    sum: number;
  }

  interface Extension {
    parent: OpenHypothesis;
    token: number;
    logProb: number;
    total: number;
  }

  interface SearchOptions {
    beam: number;
    alpha: number;
    nbest?: number;
    prefix?: number[];
    noRepeat?: number;
    maxTokens?: number;
    report?: (...step: SearchStep) => void;
  }

  /** A step of a search: all extensions, those that go on, how many tokens they have, and what becomes of them. */
  type SearchStep = [extensions: Extension[], open: Extension[], length: number, outcome: string];

  interface Searched {
    found: Hypothesis[];
    steps: SearchStep[];
  }

  /** A model that keeps queries, keys and values: one with only an encoder or a decoder has one reader. */
  type Reader = Tables & Partial<Pick<Model, "sourceReader" | "targetReader" | "sourceRows">>;

  /** The tokens of a prompt that are shown, and how many follow. `first`: index of the first that is predicted. */
  interface Inspected {
    prompt: number[];
    offsets: (Span | null)[];
    nNew: number;
    isCut: boolean;
    first?: number;
  }

  /** A part of a continuation, or how many tokens of the text are read, if not all. */
  interface CompletionPart {
    text?: string;
    limit?: number;
  }

  /** A term of a glossary in a text. `forms`: how a translation may begin with it. */
  interface Term {
    start: number;
    end: number;
    targets: string[];
    forms: string[];
  }

  /** A part of a text that the model can read. */
  interface Part {
    space: string;
    source: string;
    ids: number[];
    required: Term[];
  }

  interface PartOutput extends Hypothesis {
    text: string;
    isTruncated: boolean;
    forced?: string[];
  }

  /** The words of the training text: corpora/spelling.py. */
  interface WordsRecord {
    n_words: number;
    n_once: number;
    nouns_have_capitals?: boolean;
    words: Record<string, string>;
  }

  /** A word of a text that is taken for another one. */
  interface WordReading {
    start: number;
    written: string;
    word: string;
  }

  /** The options of a translation in the page. */
  interface TranslationOptions {
    beam?: number;
    nbest?: number;
    align?: boolean;
    confidence?: boolean;
    terms?: string[][];
    tag?: string;
    protect?: string;
    off?: HeadOff[];
    search?: { beam?: number; alpha?: number };
  }

  interface TranslationOutput {
    text: string;
    ids: number[];
    logProbs: number[];
    score?: number;
    forced?: string[];
    readAs?: [written: string, word: string][];
    missing?: string[];
    repeated?: boolean;
    truncated?: boolean;
    words?: [word: string, probability: number][];
    alignment?: Alignment;
  }

  /** A span in a sentence, for Inline. */
  interface InnerSpan {
    text: string;
    unit: number;
    joinedBefore: boolean;
    joinedAfter: boolean;
    punctuationAfter: string;
    afterOpening: boolean;
    isEnclosed: boolean;
    signBefore: string;
    signAfter: string;
    markBefore: string;
  }

  /** A sentence without its spans: what is before and after it, and the spans in it. */
  interface Detached {
    before: string;
    core: string;
    after: string;
    inner: InnerSpan[];
    isEndBorrowed: boolean;
  }

  type Shaped<T> = T & { shape: number[] };
  type Matrix = Shaped<Float32Array>;

  /** An array in a record: its `values`, or their encoding (inspection/arrays.py). */
  interface Packed {
    shape: number[];
    values?: Float32Array;
    data?: string;
    low?: number;
    high?: number;
  }

  /** Texts with their probabilities, the most probable first. */
  type Likely = [text: string, probability: number][];

  /** A position, its token, log-probability and rank, and the best candidates. */
  type Prediction = [position: number, token: string | null, logProb: number | null, rank: number | null, best: Likely];

  interface Side {
    text: string;
    ids: number[];
    tokens: string[];
    offsets: (Span | null)[];
  }

  interface AttentionMap<A = Packed> {
    name: string;
    kind: AttentionKind;
    layer: number;
    queries: string;
    keys: string;
    weights: A;
    norms: Record<string, A>;
  }

  /** Index of the parent, step, token, log-probability, sum, status, and score and text of one that is complete. */
  type SearchNode = [parent: number, step: number, token: string, logProb: number, total: number, status: string, score: number | null, text: string | null];

  /** What happens inside of a model: inspection/inspect.py. `live`: in a page with the model. */
  interface InspectionRecord {
    format: number;
    task: string;
    family: string;
    sizes: Record<string, number>;
    notes: string[];
    sides: Record<string, Side>;
    vectors: Record<string, Record<string, Packed>>;
    attention: AttentionMap[];
    rollout: Record<string, Packed>;
    stream: Record<string, Record<string, Packed>>;
    lens: Record<string, Prediction[]>;
    predictions: Prediction[];
    predicts: string;
    first_predicted: number;
    answer: string;
    beam: SearchNode[];
    best_path: number[];
    alignment: Packed | null;
    agreement: Packed | null;
    saliency: Record<string, Packed>;
    live?: {
      off: HeadOff[];
      unchanged: string | null;
      output: string;
      canSwitch: boolean;
      search?: { beam: number; alpha: number };
      hasDistribution?: boolean;
      hasLens: boolean;
    };
  }

  /** The matrices of a head: Q, K, V, scores, weights and output. */
  interface HeadSteps {
    scale: number;
    hasBias: boolean;
    matrices: Record<string, Packed>;
  }

  /** The tokens of a position, the most probable first. */
  interface Distribution {
    texts: string[];
    logProbs: Float64Array;
  }

  /** What the model was given for the last record. */
  interface Recorded {
    off: HeadOff[];
    source: number[];
    inputs: number[];
    expected: number[];
  }

  /** The settings of what is shown of the inside of the model, in a link. */
  interface InsideBegin {
    wanted?: { off?: HeadOff[]; search?: { beam?: number; alpha?: number } };
    view?: HeadChoice;
    tag?: string;
  }

  /** A text whose inside is shown, and the domain of the model. */
  interface GivenText {
    text: string;
    tag?: string;
  }

  /** Show a message; without a text it is removed. `again`: with a button for another try. */
  type Say = (text?: string, isProblem?: boolean, again?: boolean) => void;

  /** The options of a call of the worker. */
  interface CallOptions {
    signal?: AbortSignal;
    transfer?: Transferable[];
    receive?: (part: any) => void;
  }

  interface HeadName {
    kind: AttentionKind;
    layer: number;
    head: number;
  }

  /** What the section of attention shows: a head, "mean" or "roll-out". */
  interface HeadChoice {
    kind: AttentionKind;
    layer: number;
    head: number | string;
  }

  interface HeadState {
    kind: AttentionKind;
    map: AttentionMap<Matrix>;
    head: number | string;
  }

  /** The answer to a question of the page that shows the inside of the model. */
  interface InsideAnswer {
    ask: string;
    values: object;
    answer: any;
  }

  interface SliderOptions {
    value: number;
    min: number;
    max: number;
    step: number;
    shown?: (value: number) => string;
  }

  /** What a number of a matrix is computed from: a row and a column, null: all, of another one. */
  interface Operand {
    name: string;
    row: "row" | "column" | number | null;
    column: "row" | "column" | number | null;
    shift: number;
  }

  /** What is highlighted in a matrix: a row, a column or a number; null: nothing. */
  interface MatrixLight {
    light: (row: number | null, column: number | null) => void;
    isColumn: (j: number) => boolean;
  }

  /** A matrix of a worked example: inspection/worked_example.py. */
  interface MatrixRecord {
    name: string;
    shape: number[];
    values: number[] | Packed;
    rows: string[];
    columns: string[];
    operands: Operand[];
  }

  /** By layer, a function for each token that shows the prediction of the layer. */
  type WayCells = Map<number, ((prediction: Prediction) => void)[]>;

  /** A column of the whole way: its heading, and a cell for each token. */
  interface WayColumn {
    head: Child[];
    cell: (i: number) => HTMLElement;
  }

  /** A file that is translated: its address, a name if the server gives none, and notes. */
  interface TranslatedFile {
    href: string;
    name: string;
    notes?: string[];
  }

  /** A part of a stream of a continuation. */
  interface CompletionRecord {
    choices: { text?: string }[];
    note?: string;
  }

  /** The settings of the page: `/frontend/settings`. */
  interface Settings {
    charLimit: number;
    keyRequired: boolean;
    suggestions: boolean;
    supportedFilesFormat: string[];
    language: { source: { code: string }; target: { code: string } };
    glossaries?: string[];
    memories?: string[];
  }

  /** A model of the server: `/models`. */
  interface ModelRow {
    id: string;
    task: string;
    pipeline: string | null;
    labels: string[];
    inputs: string[];
    tags?: string[];
    source?: string;
    target?: string;
    features: string[];
  }

  /** A language of the server: `/languages`. */
  interface LanguageRow {
    code: string;
    name: string;
    targets: string[];
  }

  /** The form of a model: `text` is what can be inspected. */
  interface FormView {
    fields: HTMLElement | HTMLElement[];
    request: () => [path: string, body: object];
    text?: () => string;
    run: (signal: AbortSignal) => Promise<void>;
  }

  interface SentenceTranslation {
    text: string;
    alignment: Alignment;
    words: [word: string, probability: number][];
    missing: string[];
    readAs?: [written: string, word: string][];
    truncated?: boolean;
    source: string;
    match?: { used: boolean; similarity: number; source: string };
    isCorrected?: boolean;
  }

  /** A translation that the user chose for a sentence. */
  interface Override extends SentenceTranslation {
    src: string;
    pair: string[];
  }

  /** A sentence of the text. `previous`: what is shown until there is a translation. */
  interface Sentence {
    start: number;
    text: string;
    translation?: SentenceTranslation;
    previous?: SentenceTranslation;
  }

  /** A sentence whose translation is edited: `pair` is its direction. */
  interface EditedSentence extends Sentence {
    pair: string[];
  }

  /** A sentence as it is shown: the white space before it, and the elements of its words. */
  interface OutputRow {
    part: Sentence;
    gap: string;
    shown?: SentenceTranslation;
    isWaiting: boolean;
    words?: HTMLElement[];
    nodes?: ChildNode[];
  }

  /** A request for the translations of sentences. */
  interface RequestBatch {
    texts: string[];
    draft?: Sentence;
    number: number;
    controller: AbortController;
  }

  /**
   * What Requests needs. `found`: called when there are translations, with the start of a draft and its translation, if
   * it was one; `failed`: with an error after which nothing is asked until the text changes.
   */
  interface RequestOptions {
    request: (texts: string[], options: TranslationChoices, signal: AbortSignal) => Promise<SentenceTranslation[]>;
    found: (start?: number, translation?: SentenceTranslation) => void;
    failed: (error: Error) => void;
    say: Say;
  }

  /** What the user chose for all sentences. */
  interface TranslationChoices extends Record<string, unknown> {
    source: string;
    target: string;
    terms: string[][];
  }

  /** Text in bold, other text, and what a click does. */
  type MenuRow = [first: string, rest: string, act: () => void];

  /** A child of an element; without a value there is none. */
  type Child = Node | string | false | null | undefined;
}

// The page with a model has another api.js and inspect.js, with what the others use of those of the server.
type Same<Expected, Found extends Expected> = Found;
type Api = "get" | "post" | "retrying" | "stream" | "translateFile" | "whileLoading";
type ApiOfPage = Same<Pick<typeof serverApi, Api>, typeof pageApi>;
type InspectOfPage = Same<
  Pick<typeof serverInspect, "inspectButton"> & { inspect(...values: Parameters<typeof serverInspect.inspect>): unknown },
  typeof pageInspect
>;

// What subclasses have.
declare module "./src/glassformer/browser/page/base_tokenizer.js" {
  interface Tokenizer {
    tokens(text: string): Token[];
    join(tokens: string[]): string;
  }
}
declare module "./src/glassformer/browser/page/kernels.js" {
  interface Tables {
    switchOff(off: HeadOff[]): void;
  }
}
