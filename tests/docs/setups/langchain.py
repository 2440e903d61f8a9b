import ragtrace
import ragtrace_langchain
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from ragtrace_langchain import RagtraceHandler


class Faq(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document("You can cancel in Settings, under Billing.", id="cancel")]


retriever, question = Faq(), "How do I cancel?"
model = FakeListChatModel(responses=["You can cancel in Settings."])
prompt = ChatPromptTemplate.from_template("Answer from this: {context}")
chain = {"context": retriever, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()
