// An agent in plain JavaScript: a loop of native tool calls with `fetch`, no package to install.
//
// The model is at OPENAI_BASE_URL, the tools are at REWOO_BENCH_TOOLS_URL: GET gives their OpenAPI document, and POST
// …/NAME calls one. The last line of standard output is the answer.

const MOST_TURNS = 10;
const { OPENAI_API_KEY, OPENAI_BASE_URL, REWOO_BENCH_MODEL, REWOO_BENCH_QUESTION, REWOO_BENCH_TOOLS_URL } = process.env;
const own = { input: 0, output: 0, calls: 0 };

async function request(url, body) {
  const headers = { authorization: `Bearer ${OPENAI_API_KEY}`, "content-type": "application/json" };
  const response = await fetch(url, body && { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${response.status} from ${new URL(url).pathname}: ${await response.text()}`);
  return response.json();
}

async function describedTools() {
  const { paths } = await request(REWOO_BENCH_TOOLS_URL);
  return Object.values(paths).map(({ post }) => ({
    type: "function",
    function: {
      name: post.operationId,
      description: post.description,
      parameters: post.requestBody.content["application/json"].schema,
    },
  }));
}

async function called({ id, function: { name, arguments: text } }) {
  let content;
  try {
    content = (await request(`${REWOO_BENCH_TOOLS_URL}/${name}`, JSON.parse(text))).result;
  } catch (error) {
    content = `Error: ${error.message}`; // the model may try again
  }
  return { role: "tool", tool_call_id: id, content };
}

async function answer(question) {
  const tools = await describedTools();
  const messages = [
    { role: "system", content: "You are a helpful assistant. Use the tools." },
    { role: "user", content: question },
  ];
  for (let turn = 0; turn < MOST_TURNS; turn++) {
    const body = { model: REWOO_BENCH_MODEL, messages, ...(tools.length ? { tools } : {}) };
    const reply = await request(`${OPENAI_BASE_URL}/chat/completions`, body);
    own.input += reply.usage?.prompt_tokens ?? 0;
    own.output += reply.usage?.completion_tokens ?? 0;
    own.calls += 1;
    const said = reply.choices[0].message;
    if (!said.tool_calls?.length) return said.content;
    messages.push(said, ...(await Promise.all(said.tool_calls.map(called))));
  }
  throw new Error(`no answer after ${MOST_TURNS} turns`);
}

const ended = await answer(REWOO_BENCH_QUESTION).then(
  (text) => ({ answer: text ?? "" }),
  (error) => ({ error }),
);
console.error(JSON.stringify({ own_count: own }));
if (ended.error) {
  console.error(`${ended.error.name}: ${ended.error.message}`); // the last line: the reason in the row
  process.exitCode = 1;
} else {
  console.log(JSON.stringify(ended));
}
