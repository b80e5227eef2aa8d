"""The API of Apertium, as far as OmegaT uses it: `GET /translate?langpair=en|fr&q=TEXT`."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse

from glassformer.serve.errors import ApiError, documented
from glassformer.serve.requests import check_text
from glassformer.serve.security import charge
from glassformer.serve.service import Service
from glassformer.serve.translation import Translate, checked_texts, translation_unit


def router(service: Service) -> APIRouter:
    """The routes."""
    routes = APIRouter(tags=["Apertium"], responses=documented({"type": "string"}, key="responseDetails"))

    @routes.get("/translate")
    async def translate(request: Request, langpair: str = "", q: str = "", key: str = "", markUnknown: str = "") -> Any:  # noqa: N803
        try:
            text = checked_texts(check_text(q, "q"))[0]
            charge(request, service, key or None, len(text))
            source, separator, target = langpair.partition("|")
            if not separator:
                raise ApiError(400, f"langpair={langpair[:20]}: expected two languages, for example en|fr")
            source, target = service.code(source), service.code(target)
            model = service.translator(source, target)
            if model:
                unit = translation_unit(service, model, text, Translate(q=text, source=source, target=target))
                (result,) = await service.compute(request, [unit])
                text = result.text
        except ApiError as error:
            body = {"responseData": {"translatedText": None}, "responseStatus": error.status}
            headers = {} if error.retry_after_s is None else {"Retry-After": str(error.retry_after_s)}
            return JSONResponse({**body, "responseDetails": error.message}, error.status, headers)
        return {"responseData": {"translatedText": text}, "responseStatus": 200, "responseDetails": None}

    return routes
