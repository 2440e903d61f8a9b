// The help centre on LangChain.js under OpenInference. It reads the shop's articles and questions as JSON from its input.
import { readFileSync } from "node:fs";

import { LangChainInstrumentation } from "@arizeai/openinference-instrumentation-langchain";
import * as CallbackManagerModule from "@langchain/core/callbacks/manager";
import { awaitAllCallbacks } from "@langchain/core/callbacks/promises";
import { Document } from "@langchain/core/documents";
import { StringOutputParser } from "@langchain/core/output_parsers";
import { ChatPromptTemplate } from "@langchain/core/prompts";
import { BaseRetriever } from "@langchain/core/retrievers";
import { RunnablePassthrough, RunnableSequence } from "@langchain/core/runnables";
import { ChatOpenAI } from "@langchain/openai";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { NodeTracerProvider } from "@opentelemetry/sdk-trace-node";

const shop = JSON.parse(readFileSync(0, "utf8"));
const provider = new NodeTracerProvider({
  resource: resourceFromAttributes({ "service.name": process.env.OTEL_SERVICE_NAME }),
  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
});
provider.register();
// Modules of ECMAScript are not patched as they load.
new LangChainInstrumentation({ tracerProvider: provider }).manuallyInstrument(CallbackManagerModule);

class HelpCentre extends BaseRetriever {
  lc_namespace = ["help", "centre"];

  async _getRelevantDocuments(query) {
    const { results } = shop.questions.find((question) => question.text === query);
    return results.slice(0, shop.top_k).map(([id, score]) => {
      const { text, section } = shop.articles[id];
      return new Document({ id, pageContent: text, metadata: { section, score } });
    });
  }
}

const passages = (found) => found.map((document) => document.pageContent).join("\n\n");
const chain = RunnableSequence.from([
  { context: new HelpCentre().pipe(passages), question: new RunnablePassthrough() },
  ChatPromptTemplate.fromMessages([["system", shop.system], ["human", shop.user]]),
  new ChatOpenAI({ model: shop.model, temperature: 0, configuration: { baseURL: process.env.OPENAI_BASE_URL } }),
  new StringOutputParser(),
]);
for (const { text } of shop.questions) {
  console.log(await chain.invoke(text, { runName: "help-centre" }));
  await awaitAllCallbacks(); // they end spans behind the answer
  await provider.forceFlush();
}
