// The law of plan and loop: analysis/law.py in the browser, with the same numbers (tests/unit/report/test_plan_or_loop.py).

function isLoop(design) {
  return design.startsWith("loop");
}

function requests(design, task, sizes) {
  return isLoop(design) ? loopRequests(design, task, sizes) : planRequests(design, task, sizes);
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
  let turns = Array(task.depth).fill(task.breadth);
  const head = task.system + sizes.agent + task.tools * toolTokens(task, sizes) + task.loop_exemplars;
  const passesOn = design === "loop-references" && !task.reads;
  if (passesOn) turns = [task.depth * task.breadth];
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
  const lean = design !== "plan";
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
  if (isLoop(design)) return requests(design, task, sizes).length;
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
  if (isLoop(design)) {
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

// A number with two significant digits: 3.4, 0.84, 12, 7,600.
function digits(number) {
  if (!isFinite(number) || number === 0) return String(number);
  const rounded = Number(number.toPrecision(2));
  const places = Math.max(0, 1 - Math.floor(Math.log10(Math.abs(rounded))));
  return rounded.toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places });
}

function listed(parts) {
  const most = parts.slice(0, -1).join(", "), last = parts[parts.length - 1];
  return most ? `${most} and ${last}` : last;
}

function costsOf(task, price, sizes) {
  return Object.fromEntries(COMPARED[task.reads].map(each => [each, cost(each, task, price, sizes[each])]));
}

// Which design is cheapest, and what the others cost beside it.
function saidOf(costs) {
  const usd = each => costs[each].usd, name = each => ARCHITECTURES[each];
  const [cheapest, ...others] = Object.keys(costs).sort((a, b) => usd(a) - usd(b));
  const times = each => digits(usd(each) / usd(cheapest));
  const same = others.filter(each => Number(times(each)) === 1).map(name);
  const dearer = others.filter(each => Number(times(each)) !== 1);
  let said = `${name(cheapest)} is cheapest, at about $${digits(1000 * usd(cheapest))} for 1,000 tasks`;
  if (same.length) said += `; ${listed(same)} cost${same.length > 1 ? "" : "s"} about the same`;
  if (!dearer.length) return `${said}.`;
  const low = times(dearer[0]), high = times(dearer[dearer.length - 1]);
  if (dearer.length === 1) return `${said}. ${name(dearer[0])} costs about ${low} times as much.`;
  if (low === high) return `${said}. The others cost about ${low} times as much.`;
  return `${said}. The others cost ${low} to ${high} times as much; ${name(dearer[dearer.length - 1])} costs the most.`;
}

function sentence(task, price, sizes, most) {
  const said = saidOf(costsOf(task, price, sizes)), even = tie(task, price, sizes, most);
  const loop = ARCHITECTURES.loop, plan = ARCHITECTURES.plan;
  if (even !== null) return `${said} From about ${digits(even)} look-ups in sequence on, ${plan} costs less than ${loop}.`;
  const loopEnds = ahead({ ...task, depth: most }, price, sizes) < 0;
  const [less, more] = loopEnds ? [loop, plan] : [plan, loop];
  return `${said} With more look-ups ${less} costs less than ${more}.`;
}
