// The law of plan and loop: analysis/law.py in the browser, with the same numbers (tests/unit/report/test_plan_or_loop.py).

function requests(design, task, sizes) {
  const loops = ["loop", "loop-one", "loop-references", "react"];
  return loops.includes(design) ? loopRequests(design, task, sizes) : planRequests(design, task, sizes);
}

function toolTokens(task, sizes) {
  return task.tool === null ? sizes.tool : task.tool;
}

function nameTokens(task) {
  return task.name !== null ? task.name : task.reads ? 5 : task.page;
}

function startTokens(task) {
  return task.start !== null ? task.start : task.name === null ? 5 : task.name;
}

function loopRequests(design, task, sizes) {
  const lookUps = task.depth * task.breadth;
  let turns = Array(task.depth).fill(task.breadth);
  if (design === "loop-one" || design === "react") turns = Array(lookUps).fill(1);
  else if (design === "loop-references" && !task.reads) turns = [lookUps];
  const head = task.system + sizes.agent + task.tools * toolTokens(task, sizes) + task.loop_exemplars;
  const passesOn = design === "loop-references" && !task.reads;
  const sent = [];
  let trace = 0;
  for (const [turn, calls] of [...turns, 0].entries()) {
    const prompt = head + task.question + trace;
    const named = passesOn && calls ? task.breadth : calls;
    const name = turn % task.depth === 0 || passesOn ? startTokens(task) : nameTokens(task);
    const written = named * (sizes.call + name) + (calls - named) * sizes.next_call;
    const reply = calls ? written : sizes.answer + nameTokens(task);
    const own = sent.length ? sent[sent.length - 1].input : 0;
    sent.push({ input: prompt, own, head, marked: prompt, output: reply + task.reasoning });
    trace += sizes.turn + written + calls * (sizes.seen + task.page);
  }
  return sent;
}

function planRequests(design, task, sizes) {
  const lookUps = task.depth * task.breadth;
  const following = lookUps - task.breadth;
  const reads = task.reads ? following : 0;
  const lean = ["plan-unread", "rewoo-unread", "code"].includes(design);
  let head = task.system + sizes.planner + task.tools * toolTokens(task, sizes) + task.plan_exemplars;
  const plan = sizes.frame + task.breadth * (sizes.step + startTokens(task)) + following * sizes.next_step
    + reads * sizes.read_step;
  const read = sizes.read + nameTokens(task) + (task.readers_reason ? task.reasoning : 0);
  const sent = [{ input: head + task.question, own: 0, head, marked: head, output: plan + task.reasoning }];
  for (let number = 0; number < reads; number++) {
    const own = number < task.breadth ? 0 : sizes.reader;
    const input = sizes.reader + sizes.request + task.page;
    sent.push({ input, own, head: sizes.reader, marked: sizes.reader, output: read });
  }
  let found = task.page * (lean ? lookUps - reads : lookUps);
  found += task.breadth * (sizes.shown + startTokens(task)) + following * sizes.next_shown;
  found += reads * (sizes.shown_read + nameTokens(task));
  head = task.system + sizes.solver;
  const input = head + sizes.asked * task.question + found;
  sent.push({ input, own: 0, head, marked: head, output: sizes.answer + nameTokens(task) + task.reasoning });
  return sent;
}

function inSequence(design, task, sizes) {
  if (["loop", "loop-one", "loop-references", "react"].includes(design)) return requests(design, task, sizes).length;
  return 2 + (task.reads ? task.depth - 1 : 0);
}

// Tokens of one request that the cache holds, and those that are written to it.
function cachedTokens(sent, rule) {
  if (!rule) return [0, 0];
  const least = rule.least || 0, block = rule.block || 1;
  const ofRun = rule.scope === "question" ? sent.own : sent.head;
  if (rule.kind === "explicit") {
    const bound = ofRun + 1;
    let found = Math.max(sent.own, sent.head);
    if (rule.scope === "question" && found > bound) found = 0;
    let cached = Math.max(found, sent.head <= bound ? sent.head : 0);
    if (cached < least) cached = 0;
    return [cached, sent.marked < least ? 0 : Math.max(sent.marked - cached, 0)];
  }
  const shared = Math.max(sent.own, ofRun);
  let cached = Math.floor(Math.min(shared, sent.input - 1) / block) * block;
  const tooShort = sent.input < Math.max(least, 1);
  if (tooShort || cached < Math.max(least, 1)) cached = 0;
  return [cached, tooShort ? 0 : Math.floor(sent.input / block) * block - cached];
}

function asBilled(design, task, sizes, billing) {
  if (["loop", "loop-one", "loop-references"].includes(design)) {
    const perCall = task.tools ? billing.per_call : 0;
    return [{ ...task, tool: billing.share * toolTokens(task, sizes) }, { ...sizes, agent: sizes.agent + perCall }];
  }
  const schema = sizes.schema + task.tools * sizes.schema_tool;
  return [task, { ...sizes, planner: sizes.planner + billing.response_schema * schema }];
}

// `price` has dollars of a token: input, output, cache_read, cache_write (null: as other input), the cache's rule, and
// how tools are billed (null: as their JSON counts).
function cost(design, task, price, sizes) {
  if (price.tools) [task, sizes] = asBilled(design, task, sizes, price.tools);
  const total = { calls: 0, in_sequence: inSequence(design, task, sizes), input_tokens: 0, cached_tokens: 0,
    output_tokens: 0, usd: 0 };
  for (const sent of requests(design, task, sizes)) {
    const [cached, written] = cachedTokens(sent, price.rule);
    const extra = price.cache_write === null ? 0 : written * (price.cache_write - price.input);
    total.calls += 1;
    total.input_tokens += sent.input;
    total.cached_tokens += cached;
    total.output_tokens += sent.output;
    total.usd += (sent.input - cached) * price.input + cached * price.cache_read + extra + sent.output * price.output;
  }
  return total;
}

// The logarithm of the loop's dollars by the plan's: below 0 where the loop is cheaper.
function ahead(task, price, sizes) {
  return Math.log(cost("loop", task, price, sizes["loop"]).usd / cost("plan", task, price, sizes["plan"]).usd);
}

function tie(task, price, sizes, most) {
  let found = null, before = 0;
  for (let depth = 1; depth <= most; depth++) {
    const now = ahead({ ...task, depth }, price, sizes);
    if (now < 0) found = null;
    else if (before < 0) found = depth - 1 + before / (before - now);
    before = now;
  }
  return found;
}
