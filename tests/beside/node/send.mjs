// Sends one RAG run in OpenInference's attributes with one of Node's OTLP exporters, and prints its ids.
// Usage: node send.mjs http|proto|grpc URL
import { createRequire } from "node:module";

const require = createRequire(`${process.env.NODE_FOLDER}/`);
const { NodeTracerProvider, BatchSpanProcessor } = require("@opentelemetry/sdk-trace-node");
const { context, trace } = require("@opentelemetry/api");
const [kind, url] = process.argv.slice(2);
const { OTLPTraceExporter } = require(`@opentelemetry/exporter-trace-otlp-${kind}`);

const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url }))] });
const tracer = provider.getTracer("@arizeai/openinference-instrumentation-langchain");
const start = (name, kind, parent, attributes) =>
  tracer.startSpan(name, { attributes: { "openinference.span.kind": kind, ...attributes } }, parent);

const root = start("help-centre", "CHAIN", context.active(), {
  "input.value": "How many days do I have to return shoes?",
  "output.value": "You can return shoes within 30 days of delivery.",
});
const below = trace.setSpan(context.active(), root);
start("HelpCentre", "RETRIEVER", below, {
  "input.value": "How many days do I have to return shoes?",
  "retrieval.documents.0.document.id": "returns",
  "retrieval.documents.0.document.content": "You can return shoes within 30 days of delivery.",
  "retrieval.documents.0.document.score": 0.91,
}).end();
start("ChatOpenAI", "LLM", below, {
  "llm.model_name": "gpt-4o-mini",
  "llm.input_messages.0.message.role": "user",
  "llm.input_messages.0.message.content":
    "You can return shoes within 30 days of delivery.\nHow many days do I have to return shoes?",
  "llm.output_messages.0.message.role": "assistant",
  "llm.output_messages.0.message.content": "You can return shoes within 30 days of delivery.",
}).end();
root.end();
await provider.shutdown();
const { traceId, spanId } = root.spanContext();
console.log(JSON.stringify({ traceId, spanId }));
