// The openai package for Node.js against a running server: `node clients.mjs URL MODEL`. Exits with an error if anything is
// not as it should be.
import assert from "node:assert/strict";
import OpenAI from "openai";

const [url, model] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
const schema = {
  type: "object",
  properties: { name: { type: "string" }, age: { type: "integer", minimum: 0, maximum: 150 } },
  required: ["name", "age"],
  additionalProperties: false,
};
const messages = [{ role: "user", content: "Extract name and age as JSON: Ada Lovelace, age 36." }];
const response_format = { type: "json_schema", json_schema: { name: "person", strict: true, schema } };

const whole = await client.chat.completions.create({ model, messages, response_format, temperature: 0 });
const person = JSON.parse(whole.choices[0].message.content);
assert.equal(typeof person.name, "string");
assert.ok(Number.isInteger(person.age));

let text = "";
const stream = client.chat.completions.stream({ model, messages, response_format, temperature: 0 });
stream.on("content", (delta) => (text += delta));
await stream.done();
assert.equal(text, whole.choices[0].message.content);

const tools = [{ type: "function", function: { name: "save", parameters: schema, strict: true } }];
const called = await client.chat.completions
  .stream({ model, messages, tools, tool_choice: "required", parallel_tool_calls: false, temperature: 0 })
  .finalChatCompletion();
assert.equal(called.choices[0].finish_reason, "tool_calls");
assert.equal(called.choices[0].message.tool_calls[0].function.name, "save");
assert.ok(Number.isInteger(JSON.parse(called.choices[0].message.tool_calls[0].function.arguments).age));

const response = await client.responses.create({
  model,
  input: messages[0].content,
  text: { format: { type: "json_schema", name: "person", strict: true, schema } },
  temperature: 0,
});
assert.equal(response.output_text, whole.choices[0].message.content);

await assert.rejects(client.chat.completions.create({ model, messages, audio: { voice: "x", format: "wav" } }), (error) => {
  assert.equal(error.status, 400);
  assert.equal(error.code, "unsupported_parameter");
  return true;
});
const models = await client.models.list();
assert.equal(models.data[0].id, model);
console.log("all good");
