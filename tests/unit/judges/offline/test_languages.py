"""The offline judge and other languages: refusals are abstentions, answers are no number."""

# ruff: noqa: RUF001

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ragtrace.judges.offline.words import is_english
from tests.unit.judges.offline.scoring import results

if TYPE_CHECKING:
    from ragtrace.model import MetricResult

ENGLISH = "The desk costs 12 euros and is delivered within five working days."
ANSWERS = {
    "German": "Der Tisch kostet 12 Euro und wird innerhalb von fünf Werktagen geliefert.",
    "French": "Le bureau coûte 12 euros et il est livré dans les cinq jours ouvrables.",
    "Spanish": "El escritorio cuesta 12 euros y se entrega en cinco días laborables.",
    "Italian": "La scrivania costa 12 euro e viene consegnata entro cinque giorni.",
    "Portuguese": "A mesa custa 12 euros e é entregue em cinco dias úteis.",
    "Dutch": "Het bureau kost 12 euro en wordt binnen vijf werkdagen geleverd.",
    "Swedish": "Skrivbordet kostar 12 euro och levereras inom fem arbetsdagar.",
    "Danish": "Skrivebordet koster 12 euro og leveres inden for fem hverdage.",
    "Polish": "Biurko kosztuje 12 euro i jest dostarczane w ciągu pięciu dni roboczych.",
    "Czech": "Stůl stojí 12 eur a je doručen do pěti pracovních dnů.",
    "Turkish": "Masa 12 avroya mal olur ve beş iş günü içinde teslim edilir.",
    "Finnish": "Pöytä maksaa 12 euroa ja se toimitetaan viiden arkipäivän kuluessa.",
    "Russian": "Стол стоит 12 евро и доставляется в течение пяти рабочих дней.",
    "Greek": "Το γραφείο κοστίζει 12 ευρώ και παραδίδεται σε πέντε ημέρες.",
    "Chinese": "这张桌子售价12欧元，五个工作日内送达。",
    "Japanese": "机の価格は12ユーロで、5営業日以内に届きます。",
    "Korean": "책상의 가격은 12유로이며 영업일 기준 5일 이내에 배송됩니다.",
    "Arabic": "يكلف المكتب 12 يورو ويتم تسليمه في غضون خمسة أيام عمل.",
    "Hindi": "मेज की कीमत 12 यूरो है और यह पाँच कार्य दिवसों में पहुँचती है।",
    "Vietnamese": "Bàn có giá 12 euro và được giao trong năm ngày làm việc.",
}
REFUSALS = {
    "English": (
        "I don't know.",
        "I can't help with that.",
        "The document does not say.",
        "No result found",
        "I'm sorry, but I couldn't find that in the documents. Let me know if I can help!",
    ),
    "German": ("Das weiß ich leider nicht.", "Tut mir leid, dazu habe ich keine Informationen."),
    "French": ("Je ne sais pas.", "Désolé, mais le document ne mentionne pas cette information."),
    "Spanish": ("No lo sé.", "Lo siento, pero no tengo información sobre eso."),
    "Italian": ("Non lo so.", "Mi dispiace, ma non ho informazioni su questo argomento."),
    "Portuguese": ("Não sei.", "Desculpe, não encontrei essa informação nos documentos."),
    "Dutch": ("Dat weet ik niet.", "Het spijt me, maar ik kan deze vraag niet beantwoorden."),
    "Swedish": ("Jag vet inte.", "Det framgår inte av dokumenten."),
    "Danish": ("Det ved jeg ikke.", "Beklager, jeg kan ikke svare på det spørgsmål."),
    "Finnish": ("En tiedä.", "Valitettavasti en löydä tietoa siitä."),
    "Polish": ("Nie wiem.", "Przykro mi, ale nie mam informacji na ten temat."),
    "Czech": ("Nevím.", "Omlouvám se, ale nemohu odpovědět."),
    "Turkish": ("Bilmiyorum.", "Üzgünüm, bu soruyu yanıtlayamıyorum."),
    "Russian": ("Я не знаю.", "К сожалению, в документах нет информации об этом."),
    "Ukrainian": ("Я не знаю.", "Вибачте, але я не можу відповісти на це запитання."),
    "Indonesian": ("Saya tidak tahu.", "Maaf, tidak ada informasi tentang hal itu."),
    "Vietnamese": ("Tôi không biết.", "Xin lỗi, tôi không tìm thấy thông tin này."),
    "Chinese": ("我不知道。", "抱歉，根据提供的资料，没有相关信息。"),
    "Japanese": ("わかりません。", "申し訳ありませんが、その情報は見つかりませんでした。"),
    "Korean": ("잘 모르겠습니다.", "죄송하지만 제공된 문서에서 해당 정보를 찾을 수 없습니다."),
    "Arabic": ("لا أعرف.", "عذرًا، لا توجد معلومات عن ذلك في المستندات."),
    "Hindi": ("मुझे नहीं पता।", "क्षमा करें, इस बारे में जानकारी नहीं है।"),
}
NAMES = ["faithfulness", "invented_specifics", "context_use", "no_answer"]


async def scores(answer: str, context: str = ENGLISH) -> dict[str, MetricResult]:
    return await results(answer, context, metrics=NAMES)


@pytest.mark.parametrize("language", ANSWERS)
@pytest.mark.parametrize("context", ["English", "its own"])
async def test_an_answer_in_another_language_is_no_number(language: str, context: str) -> None:
    answer = ANSWERS[language]
    found = await scores(answer, ENGLISH if context == "English" else answer)
    states = {name: (found[name].state, found[name].reason) for name in NAMES[:3]}
    assert set(states.values()) == {("na", "unsupported_language")}, states
    assert found["answered"].value == 1.0


@pytest.mark.parametrize("language", ANSWERS)
async def test_an_english_answer_over_other_contexts_is_no_number(language: str) -> None:
    assert (await scores(ENGLISH, ANSWERS[language]))["faithfulness"].reason == "unsupported_language"


@pytest.mark.parametrize("answer", [one for refusals in REFUSALS.values() for one in refusals])
async def test_a_refusal_is_an_abstention(answer: str) -> None:
    found = await scores(answer)
    assert (found["faithfulness"].state, found["faithfulness"].reason) == ("na", "abstained")
    assert found["invented_specifics"].reason == "abstained"
    assert found["answered"].value == 0.0


@pytest.mark.parametrize(
    "answer",
    [
        "I cannot help, but Paris is the capital.",
        "The text does not say when. The lab is in Oslo.",
        "Das weiß ich nicht genau, aber der Tisch kostet 12 Euro.",
        "Je ne sais pas tout, mais le bureau coûte 12 euros.",
        "Leider ist der Tisch ausverkauft.",
        "残念ながら返品できません。",
    ],
)
async def test_an_answer_beside_a_regret_is_an_attempt(answer: str) -> None:
    assert (await scores(answer))["answered"].value == 1.0


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Oslo", None),
        ("12 euros", None),
        ("Oslo, Bergen, Trondheim", None),
        ("Gabriel García Márquez, José Saramago", None),
        ("The café in Málaga serves tapas y vino.", True),
        ("Yes.", None),
        ("Refunds take five days.", None),
        ("It means 谢谢 in Chinese.", True),
        ("E = mc²", None),
        ("Der Tisch ist rot.", False),
        ("Die Hard is a film.", True),
        ("北京", False),
    ],
)
def test_english_is_told(text: str, *, found: bool | None) -> None:
    assert is_english(text) is found


@pytest.mark.parametrize(
    "text",
    [
        "Los Angeles, San Diego, San Francisco",
        "Ludwig van Beethoven",
        "Leonardo da Vinci",
        "Rio de Janeiro",
        "Hotel Les Arcs, Chamonix, France",
        "Error code E404",
        "Email: anna@example.de",
        "https://example.com/de/die/der/das",
        "| Plan | Price |\n|---|---|\n| Basic | 12 |\n| Pro | 30 |",
    ],
)
def test_names_codes_addresses_and_tables_are_no_foreign_language(text: str) -> None:
    fact = "The lab is in Oslo."
    assert is_english(text) is None
    assert is_english(f"{fact} {text}") is True
